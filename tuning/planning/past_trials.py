"""The trials of a store in the form of the search, for a sweep that is resumed."""

from collections.abc import Sequence

import pyarrow as pa

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.results.best import compared_merit
from contrasweep.tuning.results.trials import Curve, TrialOutcome, epoch_means, merit_of
from contrasweep.tuning.results.violations import violations_of
from contrasweep.tuning.search import PastTrial
from contrasweep.tuning.store import StudyRecord


def past_trials(held: Sequence[TrialOutcome], epochs: pa.Table, record: StudyRecord) -> list[PastTrial]:
    """Return the trials `held` by the store in the form of the search: merits by epoch, and final ones.

    Merits by epoch are those that the trials reported to the search, so that a resumed one decides as before.
    Epoch 0, the untrained encoder, is left out, because running trials do not report it to the search either.

    Raises:
        InputError: the store holds a trial that the study does not plan.
    """
    planned = record.require_search().trials
    unplanned = [one.trial for one in held if one.trial >= planned]
    if unplanned:
        raise InputError(
            f"study {record.name} plans {planned} trials, but the store holds trial {unplanned[0]}: "
            "its record or its rows are those of another study"
        )
    curves = epoch_means(epochs, record, record.rung_metric)
    metrics = record.require_search().metrics
    return [
        PastTrial(
            one.trial,
            one.values,
            one.status,
            _reported(curves[one.trial], record.rung_metric) if one.trial in curves else {},
            tuple(merit_of(one, metric) for metric in metrics),
            violations_of(one, record.require_search().keep, record.columns.metrics),
        )
        for one in held
    ]


def _reported(curve: Curve, metric: str) -> dict[int, float]:
    return {epoch: compared_merit(metric, score) for epoch, score in curve.after(0).items()}
