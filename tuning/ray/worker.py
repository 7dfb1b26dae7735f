"""The Ray actor that runs trials one after another and prepares the dataset once."""

from pathlib import Path
from typing import Any

import torch
from ray import tune

from contrasweep.tuning.planning.seeds import new_trial
from contrasweep.tuning.planning.trial import DataCache, TrialReport, TrialRequest
from contrasweep.tuning.ray.watch import report_crashes
from contrasweep.tuning.ray.worker_group import RankGroup
from contrasweep.tuning.store import StoreUnavailable, TrialOvertaken


class TrialWorker(tune.Trainable):
    """Advances a `Trial` by one epoch at each step; Tune reuses the actor for the next trial.

    A trial that fails by itself (its loss becomes NaN, for example) ends as a normal result with `error` set:
    another try would fail again. If the store cannot be used, or another attempt has overtaken the trial, the
    result has `lost` set: the driver then stops the sweep, and a resumed sweep goes on with the trial. Ray
    notices by itself when a worker dies. The workers of a trial that has several are in a `RankGroup`; this
    actor only waits for them.
    """

    def setup(self, config: dict[str, Any]) -> None:
        """Begin the first trial."""
        report_crashes(Path(config["crashes"]))
        request: TrialRequest = config["request"]
        self._data = DataCache(request.seeds, request.device)
        self._group = RankGroup(config["crashes"]) if request.workers > 1 else None
        self._begin(config)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Begin the next trial in this actor."""
        self._trial.close()
        self._begin(new_config)
        return True

    def step(self) -> dict[str, Any]:
        """Train one epoch and report it."""
        try:
            return report_of(self._trial.advance(), self._rung_metric)
        except (StoreUnavailable, TrialOvertaken) as error:
            return report_of(TrialReport(0, {}, 0.0), self._rung_metric) | {"lost": str(error), "done": True}

    def cleanup(self) -> None:
        """Close the files of the last trial and end its workers."""
        self._trial.close()
        if self._group is not None:
            self._group.end()

    def _begin(self, config: dict[str, Any]) -> None:
        request: TrialRequest = config["request"]
        torch.set_num_threads(max(1, int(request.cpus)))
        self._rung_metric: str = config["rung_metric"]
        self._trial = new_trial(request, self._data) if self._group is None else self._group.begin(request)
        # Otherwise Tune would send the configuration back with every result.
        self.config = {}


def report_of(report: TrialReport, rung_metric: str) -> dict[str, Any]:
    """Return a trial's report as the flat mapping that Ray Tune takes as a result."""
    # ASHA compares every result. NaN is never below another score, so failures report minus infinity.
    score = report.metrics.get(rung_metric, float("-inf")) if report.error is None else float("-inf")
    return {
        "epoch": report.epoch,
        "score": score if score == score else float("-inf"),
        "metrics": dict(report.metrics),
        "std": dict(report.std),
        "train_seconds": report.train_seconds,
        "finished": report.finished,
        "error": report.error,
        "lost": None,
        "done": report.finished or report.error is not None,
    }
