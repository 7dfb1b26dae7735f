"""What runs in a Ray actor: one trial after another, with the dataset prepared once."""

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
    """Advances a `Trial` by one epoch a step; reused for the next trial, so imports and data are paid once.

    A trial that fails by itself (a loss that becomes NaN, say) ends as a normal result with `error` set: to
    run it again would only fail again. One that cannot go on for no fault of its own says so in `lost`: the
    driver then stops the sweep, and a resumed one goes on with it. A worker that dies is Ray's to notice.
    A trial of several workers has them in a `RankGroup`, and is only waited for here.
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
        """Let go of the last trial's files, and of its workers."""
        self._trial.close()
        if self._group is not None:
            self._group.end()

    def _begin(self, config: dict[str, Any]) -> None:
        request: TrialRequest = config["request"]
        torch.set_num_threads(max(1, int(request.cpus)))
        self._rung_metric: str = config["rung_metric"]
        self._trial = new_trial(request, self._data) if self._group is None else self._group.begin(request)
        # Tune would send it back with every result.
        self.config = {}


def report_of(report: TrialReport, rung_metric: str) -> dict[str, Any]:
    """Return a trial's report as the flat result that Ray Tune passes around."""
    # ASHA compares every result: a failed trial must not look good, and NaN would never look bad.
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
