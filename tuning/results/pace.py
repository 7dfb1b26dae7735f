"""The time of an epoch in earlier, similar runs, for the estimate of `--dry-run`."""

from collections.abc import Collection
from dataclasses import dataclass
from statistics import median

from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.store import ResultsStore, StudyRecord

ALIKE = ("encoder.name", "batch_size", "views.size")
"""The settings that decide most about the time of an epoch, beside method and dataset."""


@dataclass(frozen=True)
class Pace:
    """The seconds of an epoch with its scores, the median of so many earlier runs."""

    seconds: float
    runs: int


def earlier_pace(
    store: ResultsStore, experiment: Experiment, searched: Collection[str], device: str
) -> Pace | None:
    """Return the pace of earlier runs of the same method, dataset and settings `ALIKE` on such a device.

    None where there is none, or where one of these settings is searched here.
    """
    if set(ALIKE) & set(searched):
        return None
    found = [
        one for own in store.of_all(lambda record: _paces(store, record, experiment, device)) for one in own
    ]
    return Pace(median(found), len(found)) if found else None


def _paces(store: ResultsStore, record: StudyRecord, experiment: Experiment, device: str) -> list[float]:
    """Return the seconds an epoch of each run of a study that ran at one go; none of an unlike study."""
    own = record.experiment
    same = (own.method, own.dataset) == (experiment.method, experiment.dataset)
    varied = set(ALIKE) & {one.name for one in record.space.searched}
    if not same or varied or any(own.value(one) != experiment.value(one) for one in ALIKE):
        return []
    return [
        (row["train_seconds"] + (row["evaluate_seconds"] or 0.0)) / row["epoch"]
        for row in store.trials(record.name).to_pylist()
        # The seconds of a later attempt are those of its own epochs alone.
        if row["attempt"] == 1 and row["epoch"] and row["train_seconds"] and row["device"] == device
    ]
