"""Keeps the driver small: what Tune remembers of trials that ended is in the store already."""

from typing import Any

from ray.tune import Callback


class ForgetEnded(Callback):
    """Drops what Tune would keep of every trial to the end: its configuration, results and their averages."""

    def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
        """Forget a trial that finished or was stopped."""
        _forget(trial)

    def on_trial_error(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
        """Forget a trial that was given up."""
        _forget(trial)


def _forget(trial: Any) -> None:
    trial.config = {}
    trial.evaluated_params = {}
    trial.experiment_tag = None
    trial.run_metadata.last_result = {}
    trial.run_metadata.metric_analysis.clear()
    trial.run_metadata.metric_n_steps.clear()
