"""A study as the analyses see it: one row a trial, its values in units, its final score, its curve."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from contrasweep.search_spaces import Space
from contrasweep.tuning.results.study import hardware_of
from contrasweep.tuning.sensitivity.axes import Axis, Floats, Stratum, axes_of, strata_of
from contrasweep.tuning.store import ResultsStore, StudyRecord

log = logging.getLogger(__name__)

Ints = NDArray[np.int64]
Ending = Literal["completed", "no score", "stopped", "failed", "interrupted", "running"]

ENDINGS: Final[tuple[Ending, ...]] = (
    "completed",
    "stopped",
    "running",
    "interrupted",
    "no score",
    "failed",
)
"""How a trial ended. "no score": it ran to its end, but its score is missing or not finite. A trial with
several seeds has the last in this list that any of them has."""


@dataclass(frozen=True)
class Replicates:
    """The scores of completed runs, one entry a (trial, seed)."""

    trial: Ints
    seed: Ints
    score: Floats


@dataclass(frozen=True)
class Observations:
    """A study's trials, ordered by number. Arrays have one entry (row) a trial; what is unknown is NaN.

    Attributes:
        study: its name.
        method: what it trains.
        dataset: on what.
        phase: search, or final for runs on fresh seeds.
        metric: what is maximised, without `metric.`; of several, the first.
        rung_metric: its cheap form, known after every epoch.
        epochs: the budget of a trial that is not stopped; the largest, where trials differ.
        sampler: that proposed the trials; empty where it is not recorded.
        axes: the searched parameters.
        strata: how they depend on each other.
        trial: numbers.
        codes: values in units of `axes`, (trials, axes); NaN where a parameter is inactive.
        ending: how each trial ended.
        score: `metric` at full fidelity, mean over seeds; NaN unless all seeds of the trial completed.
        curve: `rung_metric` by epoch from 0, mean over seeds, (trials, epochs + 1).
        rung: epoch at which the scheduler stopped the trial.
        seconds: wall-clock, summed over seeds.
        ended: seconds from the first start of the study to the trial's end.
        untrained: score of the untrained encoder, median over trials.
        hardware: what the trials ran on, in words.
        replicates: the completed runs behind `score`.
    """

    study: str
    method: str
    dataset: str
    phase: str
    metric: str
    rung_metric: str
    epochs: int
    sampler: str
    axes: tuple[Axis, ...]
    strata: tuple[Stratum, ...]
    trial: Ints
    codes: Floats
    ending: NDArray[np.str_]
    score: Floats
    curve: Floats
    rung: Floats
    seconds: Floats
    ended: Floats
    untrained: float
    hardware: str
    replicates: Replicates

    @property
    def completed(self) -> NDArray[np.bool_]:
        """Which trials have a final score."""
        return np.asarray(self.ending == "completed")

    @property
    def over(self) -> NDArray[np.bool_]:
        """Which trials have come to an end, with or without a score; the others may yet get one."""
        return np.asarray(~np.isin(self.ending, ["running", "interrupted"]))

    def count(self, ending: Ending) -> int:
        """How many trials ended so."""
        return int(np.count_nonzero(self.ending == ending))


def observe(store: ResultsStore, study: str) -> Observations:
    """Read a study; nothing else of the analyses touches the store.

    Raises:
        StoreError: there is no such study.
    """
    tables = store.tables(study)
    return observations_from(store.study(study), tables.trials, tables.epochs)


def observations_from(record: StudyRecord, trials: pa.Table, epochs: pa.Table) -> Observations:
    """Return the observations in a study's two tables, as `ResultsStore` gives them."""
    space = Space.parse(record.space, f"the space of study {record.name}")
    axes = axes_of(space)
    run_trial = _ints(trials, "trial")
    numbers, first, row = np.unique(run_trial, return_index=True, return_inverse=True)
    run_score = _floats(trials, f"metric.{record.metric}")
    endings = _endings(trials["status"].to_pylist(), run_score)
    ending = _worst(endings, row, len(numbers))
    usable = (endings == "completed") & (ending == "completed")[row]
    budget = int(np.nanmax(_floats(trials, "epochs"), initial=0))
    curve = _curves(epochs, record.rung_metric, numbers, budget)
    began = np.nanmin(_seconds_of(trials, "started"), initial=np.inf)
    return Observations(
        study=record.name,
        method=record.method,
        dataset=record.dataset,
        phase=trials["phase"][0].as_py() if trials.num_rows else "search",
        metric=record.metric,
        rung_metric=record.rung_metric,
        epochs=budget,
        sampler="" if record.is_final else record.require_search().sampler,
        axes=axes,
        strata=strata_of(space),
        trial=numbers,
        codes=_codes(trials, axes, first),
        ending=ending,
        score=_mean_by(row[usable], run_score[usable], len(numbers)),
        curve=curve,
        rung=_floats(trials, "rung")[first],
        seconds=_sum_by(row, _floats(trials, "seconds"), len(numbers)),
        ended=_last_by(row, _seconds_of(trials, "finished"), len(numbers)) - began,
        untrained=_untrained(epochs, record.metric),
        hardware=hardware_of(trials),
        replicates=Replicates(run_trial[usable], _ints(trials, "seed")[usable], run_score[usable]),
    )


def _endings(statuses: list[str], scores: Floats) -> NDArray[np.str_]:
    pairs = zip(statuses, np.isfinite(scores), strict=True)
    found = ["no score" if s == "completed" and not known else s for s, known in pairs]
    return np.array(found, dtype="<U11")


def _worst(endings: NDArray[np.str_], row: Ints, count: int) -> NDArray[np.str_]:
    rank: dict[str, int] = {ending: place for place, ending in enumerate(ENDINGS)}
    worst = np.zeros(count, dtype=int)
    np.maximum.at(worst, row, np.array([rank[str(e)] for e in endings], dtype=int))
    return np.array(ENDINGS, dtype="<U11")[worst]


def _codes(trials: pa.Table, axes: tuple[Axis, ...], first: Ints) -> Floats:
    columns = []
    for axis in axes:
        codes = axis.codes(trials[f"hp.{axis.name}"].to_pylist())[first]
        outside = np.isnan(codes) & trials[f"hp.{axis.name}"].is_valid().to_numpy()[first]
        if outside.any():
            log.warning("%s: %d values outside the recorded space are left out", axis.name, outside.sum())
        columns.append(codes)
    return np.stack(columns, axis=1) if columns else np.zeros((len(first), 0))


def _curves(epochs: pa.Table, metric: str, numbers: Ints, budget: int) -> Floats:
    """Return the mean over seeds of each (trial, epoch); an epoch that any seed lacks in number is kept."""
    shape = (len(numbers), budget + 1)
    if f"metric.{metric}" not in epochs.column_names or epochs.num_rows == 0 or not len(numbers):
        return np.full(shape, np.nan)
    values = _floats(epochs, f"metric.{metric}")
    row = np.minimum(np.searchsorted(numbers, _ints(epochs, "trial")), len(numbers) - 1)
    epoch = _ints(epochs, "epoch")
    kept = np.isfinite(values) & (epoch <= budget) & (numbers[row] == _ints(epochs, "trial"))
    flat = row[kept] * shape[1] + epoch[kept]
    return _mean_by(flat, values[kept], shape[0] * shape[1]).reshape(shape)


def _untrained(epochs: pa.Table, metric: str) -> float:
    if f"metric.{metric}" not in epochs.column_names:
        return float("nan")
    values = _floats(epochs, f"metric.{metric}")[_ints(epochs, "epoch") == 0]
    values = values[np.isfinite(values)]
    return float(np.median(values)) if len(values) else float("nan")


def _mean_by(group: Ints, values: Floats, count: int) -> Floats:
    total = np.bincount(group, weights=values, minlength=count)
    number = np.bincount(group, minlength=count).astype(float)
    mean: Floats = np.divide(total, number, out=np.full(count, np.nan), where=number > 0)
    return mean


def _sum_by(group: Ints, values: Floats, count: int) -> Floats:
    known = np.isfinite(values)
    return np.bincount(group[known], weights=values[known], minlength=count).astype(float)


def _last_by(group: Ints, values: Floats, count: int) -> Floats:
    last = np.full(count, -np.inf)
    np.maximum.at(last, group, np.where(np.isfinite(values), values, -np.inf))
    return np.where(np.isfinite(last), last, np.nan)


def _ints(table: pa.Table, name: str) -> Ints:
    array: Ints = table[name].to_numpy().astype(np.int64)
    return array


def _floats(table: pa.Table, name: str) -> Floats:
    """A column as floats, null as NaN; a column that the study does not have is all NaN."""
    if name not in table.column_names:
        return np.full(table.num_rows, np.nan)
    array: Any = pc.fill_null(table[name].cast(pa.float64()), np.nan)
    return np.asarray(array.to_numpy(), dtype=np.float64)


def _seconds_of(table: pa.Table, name: str) -> Floats:
    micros: Any = pc.fill_null(table[name].cast(pa.int64()).cast(pa.float64()), np.nan)
    return np.asarray(micros.to_numpy() / 1e6, dtype=np.float64)
