"""A study as arrays for the analyses: values in units, final scores and learning curves, a row per trial."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from contrasweep.tuning.experiment.conditions import in_words
from contrasweep.tuning.experiment.statuses import OPEN, Status
from contrasweep.tuning.results.best import merit, merit_name
from contrasweep.tuning.results.final_runs import SAME
from contrasweep.tuning.results.study import hardware_of
from contrasweep.tuning.results.trials import (
    TrialOutcome,
    epoch_means,
    merit_of,
    trial_outcomes,
    untrained_mean,
    untrained_scores,
)
from contrasweep.tuning.search.axes import (
    Axis,
    ConfigurationKey,
    Stratum,
    axes_of,
    codes_of,
    configuration_key,
    strata_of,
    values_of,
)
from contrasweep.tuning.statistics import Floats, Ints
from contrasweep.tuning.store import ResultsStore, StudyRecord
from contrasweep.tuning.store.schema import metric_column

log = logging.getLogger(__name__)

Ending = Literal[Status, "no score"]

ENDINGS: Final[tuple[Ending, ...]] = ("completed", "stopped", "running", "interrupted", "no score", "failed")
"""How a trial ended: its status, or "no score" where it completed and its score is missing or not finite."""


@dataclass(frozen=True)
class SeedScores:
    """The scores of completed runs, one entry per (trial, seed)."""

    trial: Ints
    seed: Ints
    score: Floats


@dataclass(frozen=True)
class Observations:
    """A study's trials, ordered by number. Arrays have one entry (row) per trial; unknown values are NaN.

    Attributes:
        study, method, dataset: its name, and what it trains on what.
        phase: `search`, or `final` for runs on fresh seeds.
        metric: the metric to maximise, without `metric.`; the first one if there are several. A metric
            that is better when it is smaller is negated, in its name too (`results.best`).
        rung_metric: its cheap form, known after every epoch.
        epochs: the epochs of a trial that is not stopped; the largest number, where trials differ.
        sampler: the sampler that proposed the trials; empty where it is not recorded.
        axes, strata: the searched parameters, and how they depend on each other.
        trial: the trials' numbers.
        codes: values in units of `axes`, (trials, axes); NaN where a parameter is inactive.
        ending: how each trial ended.
        score: `metric` at full fidelity, mean over seeds; NaN unless all seeds of the trial completed.
        curve: `rung_metric` by epoch from 0, mean over all seeds, (trials, epochs + 1).
        rung: the epoch at which the scheduler stopped the trial.
        seconds: wall-clock seconds, summed over seeds.
        ended: seconds from the first start of the study to the trial's end.
        untrained: the score of the untrained encoder, mean over trials.
        hardware: the hardware that the trials ran on, in words.
        replicates: the completed runs behind `score`.
        keep: the conditions of the search, in words. Trials that break them are here, too.
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
    replicates: SeedScores
    keep: str = ""

    @property
    def completed(self) -> NDArray[np.bool_]:
        """Which trials have a final score."""
        return np.asarray(self.ending == "completed")

    @property
    def over(self) -> NDArray[np.bool_]:
        """Which trials have ended, with or without a score; the others may yet get a score."""
        return np.asarray(~np.isin(self.ending, OPEN))

    @cached_property
    def keys(self) -> list[ConfigurationKey]:
        """What is equal for trials of one configuration, an entry for each trial."""
        return [configuration_key(values_of(self.axes, row)) for row in self.codes]

    @cached_property
    def first(self) -> NDArray[np.bool_]:
        """Which trials are the first of their configuration: of copies, the one that came furthest.

        A repeated configuration has the same seeds, so its scores are copies, which say nothing more. Trials
        of one configuration with other scores are no copies.
        """
        scores = np.concatenate([self.curve, self.score[:, None]], axis=1)
        reached = np.isfinite(scores).sum(axis=1)
        may_be_copies = np.flatnonzero(~np.isin(self.ending, ["failed", "no score"]))
        furthest: dict[ConfigurationKey, int] = {}
        found = np.ones(len(self.trial), dtype=bool)
        for row in may_be_copies[np.argsort(-reached[may_be_copies], kind="stable")]:
            held = furthest.setdefault(self.keys[row], int(row))
            if held != row:
                found[row] = not _agree(scores[row], scores[held])
        return found

    @property
    def repeats(self) -> int:
        """How many trials that have ended repeat the configuration of another one."""
        return int(np.count_nonzero(self.over & ~self.first)) if self.axes else 0

    def distinct(self) -> "Observations":
        """Return the first trial of each configuration, with its runs."""
        if not self.repeats:
            return self
        by_trial = ("trial", "codes", "ending", "score", "curve", "rung", "seconds", "ended")
        runs = self.replicates
        kept = np.isin(runs.trial, self.trial[self.first])
        return replace(
            self,
            replicates=SeedScores(runs.trial[kept], runs.seed[kept], runs.score[kept]),
            **{name: getattr(self, name)[self.first] for name in by_trial},
        )

    def count(self, ending: Ending) -> int:
        """Return how many trials ended in this way."""
        return int(np.count_nonzero(self.ending == ending))


def observe(store: ResultsStore, study: str) -> Observations:
    """Read a study from the store; the analyses read nothing else.

    Raises:
        StoreError: there is no such study.
    """
    tables = store.tables(study)
    return observations_from(store.study(study), tables.trials, tables.epochs)


def observations_from(record: StudyRecord, trials: pa.Table, epochs: pa.Table) -> Observations:
    """Return the observations in a study's two tables, as `ResultsStore` gives them."""
    axes = axes_of(record.space)
    outcomes = trial_outcomes(trials, record)
    score = [merit_of(one, record.metric) if one.status == "completed" else None for one in outcomes]
    ending = np.array(
        [
            "no score" if one.status == "completed" and mean is None else one.status
            for one, mean in zip(outcomes, score, strict=True)
        ],
        dtype="<U11",
    )
    numbers, first, row = np.unique(_ints(trials, "trial"), return_index=True, return_inverse=True)
    kept = trials.filter((ending == "completed")[row])
    budget = int(np.nanmax(_floats(trials, "epochs"), initial=0))
    # Times are stored in microseconds.
    started, finished = (_floats(trials, name, pa.int64()) / 1e6 for name in ("started", "finished"))
    began = np.nanmin(started, initial=np.inf)
    return Observations(
        study=record.name,
        method=record.method,
        dataset=record.dataset,
        phase=trials["phase"][0].as_py() if trials.num_rows else "search",
        metric=merit_name(record.metric),
        rung_metric=merit_name(record.rung_metric),
        epochs=budget,
        sampler="" if record.is_final else record.require_search().sampler,
        axes=axes,
        strata=strata_of(record.space),
        trial=numbers,
        codes=_codes(outcomes, axes),
        ending=ending,
        score=np.array(score, dtype=np.float64),
        curve=_curves(epochs, record, numbers, budget),
        rung=_floats(trials, "rung")[first],
        seconds=_sum_by(row, _floats(trials, "seconds"), len(numbers)),
        ended=_last_by(row, finished, len(numbers)) - began,
        untrained=_untrained(epochs, record),
        hardware=hardware_of(trials),
        replicates=SeedScores(
            _ints(kept, "trial"),
            _ints(kept, "seed"),
            merit(record.metric, 1.0) * _floats(kept, metric_column(record.metric)),
        ),
        keep="" if record.is_final else in_words(record.require_search().keep),
    )


def _agree(one: Floats, other: Floats) -> bool:
    """Whether the scores that both have are equal, and there are any."""
    both = np.isfinite(one) & np.isfinite(other)
    return bool(both.any()) and np.allclose(one[both], other[both], rtol=SAME, atol=0)


def _codes(outcomes: Sequence[TrialOutcome], axes: tuple[Axis, ...]) -> Floats:
    found = codes_of(axes, [one.values for one in outcomes])
    for axis, codes in zip(axes, found.T, strict=True):
        values = (one.values.get(axis.name) for one in outcomes)
        outside = sum(math.isnan(c) and v is not None for c, v in zip(codes, values, strict=True))
        if outside:
            log.warning("%s: %d values outside the recorded space are left out", axis.name, outside)
    return found


def _curves(epochs: pa.Table, record: StudyRecord, numbers: Ints, budget: int) -> Floats:
    """Return the curves of the trials up to the budget; NaN where a seed has no score."""
    found = np.full((len(numbers), budget + 1), np.nan)
    if metric_column(record.rung_metric) not in epochs.column_names:
        return found
    sign = merit(record.rung_metric, 1.0)
    place = {int(number): row for row, number in enumerate(numbers)}
    for number, curve in epoch_means(epochs, record, record.rung_metric).items():
        if number not in place:
            continue  # it began after the rows of trials were read, or its row is damaged
        within = curve.epochs <= budget
        found[place[number], curve.epochs[within].astype(int)] = sign * curve.scores[within]
    return found


def _untrained(epochs: pa.Table, record: StudyRecord) -> float:
    if metric_column(record.metric) not in epochs.column_names:
        return math.nan
    mean = untrained_mean(untrained_scores(epochs, record, record.metric))
    return math.nan if mean is None else merit(record.metric, mean)


def _sum_by(group: Ints, values: Floats, count: int) -> Floats:
    known = np.isfinite(values)
    return np.bincount(group[known], weights=values[known], minlength=count).astype(float)


def _last_by(group: Ints, values: Floats, count: int) -> Floats:
    last = np.full(count, -np.inf)
    np.maximum.at(last, group, np.where(np.isfinite(values), values, -np.inf))
    return np.where(np.isfinite(last), last, np.nan)


def _ints(table: pa.Table, name: str) -> Ints:
    return np.asarray(table[name].to_numpy(), dtype=np.int64)


def _floats(table: pa.Table, name: str, through: pa.DataType | None = None) -> Floats:
    """Return a column as floats, NaN for null; a column that the study lacks is all NaN."""
    if name not in table.column_names:
        return np.full(table.num_rows, np.nan)
    array: Any = pc.fill_null(table[name].cast(through or pa.float64()).cast(pa.float64()), np.nan)
    return np.asarray(array.to_numpy(), dtype=np.float64)
