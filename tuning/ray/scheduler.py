"""ASHA that remembers: its rungs are refilled from the store when a sweep is resumed."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.schedulers import AsyncHyperBandScheduler

NO_CONTROLLER: Any = None
"""ASHA never asks Tune's controller anything, so a replay needs none."""

REDUCTION = 3
"""Of the trials that reach a rung, one in three goes on."""


class ResumableASHA(AsyncHyperBandScheduler):
    """Asynchronous successive halving over epochs, on the `score` of each report (larger is better).

    Args:
        epochs: of a trial that is not stopped.
        past: the scores of trials that ended before this sweep was resumed, by epoch.
        interrupted: the scores of trials that will go on, by trial number and epoch.
    """

    def __init__(
        self,
        epochs: int,
        past: list[Mapping[int, float]],
        interrupted: Mapping[int, Mapping[int, float]],
    ) -> None:
        super().__init__(
            time_attr="epoch",
            metric="score",
            mode="max",
            max_t=epochs,
            grace_period=grace_period(epochs),
            reduction_factor=REDUCTION,
        )
        self._interrupted = interrupted
        for number, scores in enumerate(past):
            self._replay(SimpleNamespace(trial_id=f"past-{number}"), scores)

    def on_trial_add(self, tune_controller: Any, trial: Trial) -> None:
        """Admit a trial; one that goes on brings its earlier scores, under its new Ray id."""
        super().on_trial_add(tune_controller, trial)
        self._report(trial, self._interrupted.get(trial.config["request"].trial, {}))

    def _replay(self, stand_in: Any, scores: Mapping[int, float]) -> None:
        super().on_trial_add(NO_CONTROLLER, stand_in)
        self._report(stand_in, scores)
        super().on_trial_remove(NO_CONTROLLER, stand_in)

    def _report(self, trial: Any, scores: Mapping[int, float]) -> None:
        for epoch in sorted(scores):
            super().on_trial_result(NO_CONTROLLER, trial, {"epoch": epoch, "score": scores[epoch]})


def grace_period(epochs: int) -> int:
    """Return the epochs that every trial gets: a tenth of the budget, at least one."""
    return max(1, epochs // 10)


def rungs(epochs: int) -> tuple[int, ...]:
    """Return the epochs at which trials are compared, and the weaker ones stopped."""
    found, rung = [], grace_period(epochs)
    while rung <= epochs:
        found.append(rung)
        rung *= REDUCTION
    return tuple(found)
