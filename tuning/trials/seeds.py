"""Trials on several seeds, and trials on ranks other than the first; a worker treats both as a `Trial`."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from contrasweep.tuning.errors import TrainingDiverged
from contrasweep.tuning.experiment.statuses import Status
from contrasweep.tuning.objectives.ranks import ONE, Ranks
from contrasweep.tuning.statistics import Summary, summarise
from contrasweep.tuning.training.pretrain import AtEnd, EpochRecord, pretrain
from contrasweep.tuning.trials.checkpoints import Checkpoints
from contrasweep.tuning.trials.gpu_errors import refuse_result
from contrasweep.tuning.trials.trial import (
    DataCache,
    Trial,
    TrialReport,
    TrialRequest,
    completed_report,
    end_from_outside,
)


class Follower:
    """A trial on a rank other than the first: it trains along and leaves the store to the first rank.

    It resumes from the checkpoint that the first rank reads, and leaves out a trial that the first rank finds
    completed. All ranks advance an epoch together.
    """

    def __init__(self, request: TrialRequest, data: DataCache, ranks: Ranks) -> None:
        self._request = request
        self._data = data
        self._ranks = ranks
        self._records: Iterator[EpochRecord] | None = None
        self._epoch = 0

    def advance(self) -> TrialReport:
        """Train one epoch; report a loss that diverged, as the first rank does.

        Raises:
            StoreUnavailable, TrialOvertaken: the first rank could not start an attempt.
            RanksLost: another rank has ended.
            GpuFault, SharedGpuFull: as `Trial.advance`.
        """
        try:
            if self._records is None:
                # The first rank finds out, in `Trial.advance`, whether the trial has completed.
                held: TrialReport | None = self._ranks.once(lambda: None)
                if held is not None:
                    return held
                request = self._request
                data = self._data.get(request.experiment, request.data_root)
                self._records = pretrain(
                    request.experiment, data=data, device=request.device, ranks=self._ranks
                )
            record = next(self._records)
        except TrainingDiverged as error:
            return TrialReport(self._epoch, {}, 0.0, error=str(error))
        except RuntimeError as error:
            refuse_result(error, shared=self._request.shares_gpu)
            raise
        self._epoch = record.epoch
        return TrialReport(record.epoch, record.metrics, record.train_seconds, finished=record.finished)

    def fail(self, error: str) -> None:
        """Leave it to the first rank to record the failure."""

    def close(self) -> None:
        """Train no further, and let go of the networks."""
        self._records = None


class Replicates:
    """The seeds of one configuration in lockstep; a worker treats it as a `Trial`.

    In the store each seed has rows and a checkpoint of its own. After a death, seeds may resume from
    different epochs; those behind catch up before the trial reports. This is rare, because all seeds save
    their states in the same round. If one seed fails, all fail.
    """

    def __init__(
        self,
        request: TrialRequest,
        data: DataCache,
        *,
        at_end: AtEnd | None = None,
        clock: Callable[[], float] = time.monotonic,
        ranks: Ranks = ONE,
    ) -> None:
        together = Checkpoints(clock)
        self._requests = request.replicates()
        self._members = [_of_one_seed(one, data, ranks, at_end, together) for one in self._requests]
        self._latest = [TrialReport(-1, {}, 0.0)] * len(self._members)

    def advance(self) -> TrialReport:
        """Train every seed up to the next epoch that they share; report the means over them."""
        while True:
            behind = min(report.epoch for report in self._latest)
            for place, member in enumerate(self._members):
                if self._latest[place].epoch > behind:
                    continue
                report = member.advance()
                if report.error is not None:
                    return self._fail(place, report)
                self._latest[place] = report
            if len({report.epoch for report in self._latest}) == 1:
                return mean_report(self._latest)

    def close(self) -> None:
        """Close the files and let go of the networks; the trial may have been stopped before its end."""
        for member in self._members:
            member.close()

    def _fail(self, place: int, report: TrialReport) -> TrialReport:
        error = f"seed {self._requests[place].experiment.seed}: {report.error}"
        for other, member in enumerate(self._members):
            if other != place:
                member.fail(error)
        return TrialReport(report.epoch, {}, 0.0, error=error)


def new_trial(
    request: TrialRequest, data: DataCache, ranks: Ranks = ONE, at_end: AtEnd | None = None
) -> Trial | Follower | Replicates:
    """Return the trial of a request on this rank, whether it has one seed or several.

    `at_end` adds metrics to the result of each seed's last epoch.
    """
    if request.seeds > 1:
        return Replicates(request, data, ranks=ranks, at_end=at_end)
    return _of_one_seed(request, data, ranks, at_end)


def _of_one_seed(
    request: TrialRequest,
    data: DataCache,
    ranks: Ranks,
    at_end: AtEnd | None,
    checkpoints: Checkpoints | None = None,
) -> Trial | Follower:
    if ranks.rank:
        return Follower(request, data, ranks)
    return Trial(request, data, at_end=at_end, ranks=ranks, checkpoints=checkpoints)


def mean_report(reports: Sequence[TrialReport]) -> TrialReport:
    """Return one report for several seeds after an epoch: means and sample standard deviations."""
    names = [name for name in reports[0].metrics if all(name in report.metrics for report in reports)]
    over: Mapping[str, Summary | None] = {
        name: summarise(report.metrics[name] for report in reports) for name in names
    }
    whole = {name: found for name, found in over.items() if found is not None and found.n == len(reports)}
    nan = float("nan")
    return TrialReport(
        reports[0].epoch,
        {name: whole[name].mean if name in whole else nan for name in names},
        sum(report.train_seconds for report in reports),
        finished=reports[0].finished,
        std={name: found.std for name, found in whole.items() if found.std is not None},
    )


def all_completed(request: TrialRequest) -> TrialReport | None:
    """Return the last report of a trial all of whose seeds the store holds as completed; None of others."""
    reports = [report for one in request.replicates() if (report := completed_report(one)) is not None]
    return mean_report(reports) if len(reports) == request.seeds else None


def end_all(request: TrialRequest, status: Status, **details: Any) -> Status:
    """Record the end of each seed of a trial that cannot record it itself.

    See `trials.trial.end_from_outside`. Returns the worst status that the store now holds.
    """
    held = {end_from_outside(one, status, **details) for one in request.replicates()}
    order: tuple[Status, ...] = ("failed", "stopped", "interrupted", "completed")
    return next(worst for worst in order if worst in held)
