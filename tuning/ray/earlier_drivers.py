"""The trials of a study that earlier drivers began, and the ends that a killed driver could not record."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from contrasweep.tuning.experiment.statuses import Status
from contrasweep.tuning.planning.past_trials import past_trials
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.ray.scheduler import scheduler_for
from contrasweep.tuning.ray.trial_requests import request_of, without_earlier_studies
from contrasweep.tuning.results.trials import TrialOutcome, time_spent, trial_outcomes
from contrasweep.tuning.search import PastTrial, Proposal
from contrasweep.tuning.store import Location, ResultsStore, StudyRecord
from contrasweep.tuning.trials.seeds import end_all


@dataclass(frozen=True)
class EarlierTrials:
    """The trials that earlier drivers began.

    Attributes:
        outcomes: their outcomes.
        past: the same in the form of the search.
        seconds: the time by the clock in which they ran.
    """

    outcomes: Sequence[TrialOutcome]
    past: Sequence[PastTrial]
    seconds: float


@dataclass(frozen=True)
class _End:
    """An end that a trial has, and the store lacks."""

    trial: Proposal
    status: Status
    epoch: int | None
    error: str | None = None


def earlier_trials(plan: SweepPlan, record: StudyRecord, location: Location) -> EarlierTrials:
    """Return the trials of earlier drivers, and first record the ends that a killed driver left open.

    To be called once this driver is in charge: no other one can then be at work on the study.

    Args:
        plan: the plan of the sweep.
        record: the record of its study.
        location: the results folder.
    """
    since = datetime.now(UTC)
    found, last = _read(record, location)
    ends = [*_half_recorded(found.outcomes), *_not_recorded(plan, found.past, last)]
    sent = without_earlier_studies(record)
    for end in ends:
        request = request_of(plan, sent, location, end.trial)
        rung = plan.rung_of(end.epoch) if end.status == "stopped" else None
        end_all(request, end.status, error=end.error, rung=rung, since=since)
    return _read(record, location)[0] if ends else found


def _read(record: StudyRecord, location: Location) -> tuple[EarlierTrials, Mapping[int, int]]:
    """Return the trials in the store, and the last epoch of each that any of its seeds has reported."""
    tables = ResultsStore(location).tables(record.name)
    outcomes = trial_outcomes(tables.trials, record)
    past = past_trials(outcomes, tables.epochs, record)
    return EarlierTrials(outcomes, past, time_spent(tables)), _last_epochs(tables.epochs)


def _last_epochs(epochs: pa.Table) -> dict[int, int]:
    last = epochs.group_by("trial").aggregate([("epoch", "max")])
    return dict(zip(last["trial"].to_pylist(), last["epoch_max"].to_pylist(), strict=True))


def _half_recorded(outcomes: Sequence[TrialOutcome]) -> Iterator[_End]:
    """Yield the ends of trials of which a driver, killed between two seeds, recorded some seeds only."""
    for one in outcomes:
        if one.open_seeds:
            yield _End(Proposal(one.trial, one.values), one.status, one.epoch, one.error)


def _not_recorded(plan: SweepPlan, past: Sequence[PastTrial], last: Mapping[int, int]) -> Iterator[_End]:
    """Yield the ends of trials that were to stop after their last epoch, when their driver died.

    The store does not tell such a trial from one that was let go on and has no further epoch yet. So the
    scheduler decides about both, by all that the store holds now.
    """
    at_rung = [
        one
        for one in past
        if one.unfinished and one.epochs and max(one.epochs) == last[one.number] in plan.rungs
    ]
    if not at_rung:
        return
    study = plan.new_study()
    study.restore(past)
    scheduler = scheduler_for(plan, study, past)
    for one in at_rung:
        if scheduler.was_to_stop(one):
            yield _End(Proposal(one.number, one.values), "stopped", max(one.epochs))
