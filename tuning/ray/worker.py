"""The Ray actor that runs one trial after another, by itself or with a group of workers."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from ray import tune

from contrasweep.tuning.ray.nodes import take_share_of_node, trial_nowhere
from contrasweep.tuning.ray.watch import report_crashes
from contrasweep.tuning.ray.worker_group import RankGroup, free_memory
from contrasweep.tuning.results.best import compared_merit
from contrasweep.tuning.store import StoreUnavailable, TrialOvertaken
from contrasweep.tuning.trials.seeds import new_trial
from contrasweep.tuning.trials.trial import DataCache, TrialReport, TrialRequest
from contrasweep.tuning.trials.worker_warnings import KeptWarnings

TOGETHER = 0.25
"""Seconds of epochs that a worker reports at once: each report makes it wait for the driver."""


class TrialWorker(tune.Trainable):
    """Advances a `Trial` by one epoch at each step; Tune reuses the actor for the next trial.

    A trial that fails by itself (its loss becomes NaN, for example) ends as a normal result with `error` set:
    another try would fail again. A fault of the GPU is raised: it ends this actor, and Tune tries the trial
    again in another one. If the store cannot be used, or another attempt has overtaken the trial, the result
    has `lost` set: the driver then stops the sweep, and a resumed sweep goes on with the trial. So it does if
    the node lacks what the trial needs. Ray notices by itself when a worker dies. The workers of a trial that
    has several are in a `RankGroup`; this actor only waits for them.
    """

    def setup(self, config: dict[str, Any]) -> None:
        """Begin the first trial."""
        report_crashes(Path(config["crashes"]))
        request: TrialRequest = config["request"]
        self._device = request.device
        self._data = DataCache(request.seeds, request.device)
        self._warned = KeptWarnings()
        checks = bool(config["checks_node"])
        self._group = RankGroup(config["crashes"], checks) if request.workers > 1 else None
        self._nowhere = trial_nowhere(request) if checks and self._group is None else None
        take_share_of_node(request.gpus)
        self._begin(config)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Begin the next trial in this actor."""
        self._let_go()
        self._begin(new_config)
        return True

    def step(self) -> dict[str, Any]:
        """Train one epoch and report it."""
        try:
            report = self._trial.advance()
            if report.finished or report.error is not None:
                self._let_go()
            lost = None
        except (StoreUnavailable, TrialOvertaken) as error:
            report, lost = TrialReport(0, {}, 0.0), str(error)
        report = replace(report, warned=(*report.warned, *self._warned.take()))
        return report_of(report, self._rung_metric, lost)

    def train_buffered(self, *limits: Any) -> list[dict[str, Any]]:
        """Train epochs for `TOGETHER` seconds; an epoch after which the trial may be stopped comes alone.

        Tune calls this in place of `train`, and passes `limits` in another order than it names them. Each
        result says by its `age` how many seconds ago its epoch ended.
        """
        results: list[dict[str, Any]] = []
        ended: list[float] = []
        begun = time.monotonic()
        while True:
            last: dict[str, Any] = self.train()  # type: ignore[no-untyped-call]
            results.append(last)
            ended.append(time.monotonic())
            # A driver that dies before it hears of such an epoch must find none in the store: a resumed sweep
            # takes it that the trial was let go on.
            may_stop = not self._stops_at.isdisjoint((last["epoch"], last["epoch"] + 1))
            if last["done"] or may_stop or ended[-1] - begun >= TOGETHER:
                break
        return [{**result, "age": ended[-1] - then} for result, then in zip(results, ended, strict=True)]

    def cleanup(self) -> None:
        """Close the files of the last trial and end its workers."""
        self._trial.close()
        if self._group is not None:
            self._group.end()

    def _let_go(self) -> None:
        self._trial.close()
        free_memory(self._device)

    def _begin(self, config: dict[str, Any]) -> None:
        request: TrialRequest = config["request"]
        torch.set_num_threads(request.cpus)
        self._rung_metric: str = config["rung_metric"]
        self._stops_at = request.flush_at
        self._trial = self._nowhere or (
            new_trial(request, self._data) if self._group is None else self._group.begin(request)
        )
        # Otherwise Tune would send the configuration back with every result.
        self.config = {}


def report_of(report: TrialReport, rung_metric: str, lost: str | None = None) -> dict[str, Any]:
    """Return a trial's report as the flat mapping that Ray Tune takes as a result.

    Its `score` is the merit of the rung metric: the larger is the better. `lost` says why the trial can
    report nothing: it ends here, and a resumed sweep goes on with it.
    """
    # ASHA compares every result, those of failed trials too.
    score = None if report.error is not None else report.metrics.get(rung_metric)
    return {
        "epoch": report.epoch,
        "score": compared_merit(rung_metric, score),
        "metrics": dict(report.metrics),
        "std": dict(report.std),
        "train_seconds": report.train_seconds,
        "finished": report.finished,
        "error": report.error,
        "warned": list(report.warned),
        "lost": lost,
        "done": report.finished or report.error is not None or lost is not None,
    }
