"""A study as reports need it, read once from the store: its trials, curves, final runs and hardware."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contrasweep.names import counted, few, with_capital
from contrasweep.notebook_tables import MOST_ROWS, html_table
from contrasweep.search_spaces import Scalar, Space
from contrasweep.tuning.durations import Span
from contrasweep.tuning.errors import InputError, one_line
from contrasweep.tuning.experiment.conditions import in_words
from contrasweep.tuning.experiment.statuses import Status, StudyState, counts_in_words
from contrasweep.tuning.methods.metrics import cheap_form
from contrasweep.tuning.results.best import beats, best_name, merit, not_beaten_in_words
from contrasweep.tuning.results.candidates import Candidates, candidates_of
from contrasweep.tuning.results.columns import score_columns, texts
from contrasweep.tuning.results.commands import report_command, resume_hint, show_command
from contrasweep.tuning.results.failures import common_error
from contrasweep.tuning.results.final_runs import FinalRuns, final_records
from contrasweep.tuning.results.trials import (
    Curve,
    TrialOutcome,
    attempt_spans,
    epoch_means,
    untrained_mean,
    untrained_scores,
)
from contrasweep.tuning.statistics import improvements, is_number
from contrasweep.tuning.store import ResultsStore, SearchRecord, StudyRecord, study_names
from contrasweep.tuning.store.parts import DamagedFile, Key
from contrasweep.tuning.store.schema import metric_column

_COLUMNS: Final = ["host", "device", "cpus", "gpus"]
_NAMED: Final = 8


def hardware_of(trials: pa.Table) -> str:
    """Return the first eight hosts and devices, with a trial's share of them; empty if no trial names any.

    Args:
        trials: rows as `ResultsStore.trials` gives them.
    """
    found = [
        f"{row['host']} ({row['device']}, {_share(row)} a trial)"
        for row in trials.select(_COLUMNS).drop_null().group_by(_COLUMNS).aggregate([]).to_pylist()
    ]
    return few(found, _NAMED)


def _share(row: Mapping[str, Any]) -> str:
    shares = ((row["cpus"], "core"), (row["gpus"], "GPU"))
    return " and ".join(f"{number:g} {what}{'' if number == 1 else 's'}" for number, what in shares)


@dataclass(frozen=True)
class TrialResult:
    """One trial with its scores, which are means over its seeds.

    `score` is the study's metric once the trial completed, `std` its sample standard deviation over the
    seeds; `last` is its cheap form after the last epoch, `untrained` the metric of the encoder before
    training. A score that is unknown or not a number is None; the scheduler may compare another metric.
    """

    number: int
    seeds: tuple[int, ...]
    status: Status
    epoch: int | None
    values: Mapping[str, Scalar]
    metrics: Mapping[str, float]
    score: float | None
    std: float | None
    last: float | None
    untrained: float | None
    error: str | None

    def _repr_html_(self) -> str:
        """Return the trial as a table, for notebooks."""
        return TrialResults([self])._repr_html_()

    @property
    def columns(self) -> dict[str, Any]:
        """How it ended, its scores on the validation split, and its values, as they are shown."""
        scores = {name: value for name, value in self.metrics.items() if name.startswith("val.")}
        error = {} if self.error is None else {"error": one_line(self.error)}
        ending = {"trial": self.number, "status": self.status, "epoch": self.epoch}
        return {**ending, **scores, "untrained": self.untrained, **self.values, **error}


class TrialResults(list[TrialResult]):
    """A list of trials; notebooks show the first ones as a table."""

    def _repr_html_(self) -> str:
        """Return a row for each of the first trials: how it ended, its scores and values."""
        rows = [texts(one.columns) for one in self[:MOST_ROWS]]
        title = counted(len(self), "trial")
        return html_table(title, rows, rest=len(self) - len(rows))


@dataclass(frozen=True, repr=False)
class StudyData:
    """A study as it stood at `read_at`.

    `rows` and `epochs` are the store's tables; `final_rows` are the rows of its final runs, and
    `other_finals` are those of other numbers of epochs; `results` is the results folder, as it was given.
    """

    record: StudyRecord
    state: StudyState
    read_at: datetime
    rows: pa.Table
    epochs: pa.Table
    final_record: StudyRecord | None
    final_rows: Sequence[Mapping[str, Any]]
    other_finals: Sequence[tuple[StudyRecord, FinalRuns]]
    damaged: Sequence[DamagedFile]
    results: str

    def __repr__(self) -> str:
        """Return the study, its state, and how many of its trials ended in which way."""
        return f"StudyData({self.name}: {self.state}; {self._endings})"

    def _repr_html_(self) -> str:
        """Return the best trials as a table, for notebooks, with what qualifies their scores."""
        best = self.ranked[:MOST_ROWS]
        title = f"{self.name}: {self.record.method} on {self.record.dataset}, {best_name(self.metric)}"
        rows = [texts({**self._scores(one), **one.values}) for one in best]
        return html_table(title, rows, *self._notes(), rest=len(self.ranked) - len(best))

    @property
    def _endings(self) -> str:
        endings = counts_in_words(self.counts)
        return f"{len(self.trials):,} of {counted(self.planned, 'trial')}" + (
            f" ({endings})" if endings else ""
        )

    def _scores(self, one: TrialResult) -> dict[str, Any]:
        spread = (one.std, self.record.seeds) if self.record.seeds > 1 else None
        return score_columns(one.number, self.metric, one.score, one.untrained, one.metrics, spread)

    def _notes(self) -> Iterator[str]:
        yield f"The completed trials{self._kept}, the best first; {self.state}: {self._endings}."
        if not self.ranked:
            yield f"{self.candidates.no_best}: there is no best one."
        else:
            best = self.ranked[0]
            if best.score is not None and not beats(self.metric, best.score, best.untrained):
                yield f"{with_capital(not_beaten_in_words('the best trial'))}."
            yield self.candidates.ties_in_words
        yield self.order_in_words
        error = common_error([one.error for one in self.trials])
        yield "" if error is None else f"Failed: {error}."
        yield resume_hint(self.record.method, self.name, self.results, self.state)

    @property
    def final_runs(self) -> FinalRuns | None:
        """The final runs of the study; None if there are none."""
        if self.final_record is None:
            return None
        return _held(self.final_record, self.final_rows)

    @property
    def name(self) -> str:
        """The study's name."""
        return self.record.name

    @property
    def metric(self) -> str:
        """The metric that the search maximises; the first one if there are several."""
        return self.record.metric

    @property
    def rung_metric(self) -> str:
        """The metric that the scheduler compares, known after every epoch; usually `cheap_metric`."""
        return self.record.rung_metric

    @property
    def cheap_metric(self) -> str:
        """The cheap form of the study's metric, known after every epoch."""
        return cheap_form(self.metric, self.record.columns.metrics)

    @property
    def search(self) -> SearchRecord:
        """How the study was searched."""
        return self.record.require_search()

    @property
    def planned(self) -> int:
        """How many trials the sweep was given."""
        return self.search.trials

    @property
    def space(self) -> Space:
        """The search space."""
        return self.record.space

    @cached_property
    def candidates(self) -> Candidates:
        """The trials that can be selected, and the outcomes of all."""
        return candidates_of(self.rows, self.record)

    @cached_property
    def trials(self) -> TrialResults:
        """The trials, by number."""
        return TrialResults(self._trial(one) for one in self.candidates.outcomes)

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """The number of trials by status."""
        return Counter(trial.status for trial in self.trials)

    @cached_property
    def ranked(self) -> TrialResults:
        """The trials that can be selected, best first, as `best_trials` orders them.

        They have completed with all metrics of the search, and keep its conditions.
        """
        by_number = {trial.number: trial for trial in self.trials}
        return TrialResults(by_number[number] for number in self.candidates.scores)

    @property
    def candidates_in_words(self) -> str:
        """How many trials can be selected, and which: `5 completed`, and the conditions that they keep."""
        return f"{len(self.ranked):,} completed{self._kept}"

    @property
    def order_in_words(self) -> str:
        """How the trials of a study of several metrics are ordered; empty for one metric."""
        if len(self.search.metrics) == 1:
            return ""
        return (
            f"The study weighs {len(self.search.metrics)} metrics: trials on the Pareto front come first, "
            "then the others, both by the first metric."
        )

    @property
    def _kept(self) -> str:
        return f" that keep {in_words(self.search.keep)}" if self.search.keep else ""

    @cached_property
    def defaults(self) -> TrialResult | None:
        """The trial that ran the defaults of the space; None if none has."""
        values = self.space.defaults()
        names = [parameter.name for parameter in self.space.searched]
        return next(
            (t for t in self.trials if all(t.values.get(name) == values.get(name) for name in names)), None
        )

    def by_seed(self, trial: TrialResult, metric: str) -> dict[int, float]:
        """Return what a trial scored by `metric` at its end, by seed; seeds without a number are left out."""
        rows = self.rows.filter(pc.equal(self.rows["trial"], trial.number))
        return _finite(rows, metric)

    def untrained_by_seed(self, trial: TrialResult, metric: str) -> dict[int, float]:
        """Return what a trial's encoders scored before training, by seed."""
        at_start = pc.and_(pc.equal(self.epochs["trial"], trial.number), pc.equal(self.epochs["epoch"], 0))
        return _finite(self.epochs.filter(at_start), metric)

    @cached_property
    def best_so_far(self) -> tuple[list[int], list[float]]:
        """The trials that can be selected and beat the final scores of all earlier ones, and their scores."""
        scored = sorted(self.candidates.scores.items())
        places = improvements(np.array([merit(self.metric, score) for _, score in scored], dtype=float))
        return [scored[place][0] for place in places], [scored[place][1] for place in places]

    @cached_property
    def curves(self) -> Mapping[int, Curve]:
        """The learning curve by `rung_metric` of each trial that has an epoch, by its number."""
        return epoch_means(self.epochs, self.record, self.rung_metric)

    @cached_property
    def _cheap_curves(self) -> Mapping[int, Curve]:
        if self.cheap_metric == self.rung_metric:
            return self.curves
        return epoch_means(self.epochs, self.record, self.cheap_metric)

    @cached_property
    def spans(self) -> Mapping[Key, Span]:
        """The time in which each attempt of a seed of a trial ran; running ones count until `read_at`."""
        return attempt_spans(self.rows, self.epochs, now=self.read_at)

    @cached_property
    def untrained(self) -> float | None:
        """The untrained encoder's score by `rung_metric`: the mean over the trials."""
        return self.untrained_score(self.rung_metric)

    def untrained_score(self, metric: str) -> float | None:
        """Return the mean over the trials of the untrained encoder's score by `metric`."""
        return untrained_mean(untrained_scores(self.epochs, self.record, metric))

    @cached_property
    def _goal_untrained(self) -> Mapping[int, float]:
        return untrained_scores(self.epochs, self.record, self.metric)

    def _trial(self, one: TrialOutcome) -> TrialResult:
        curve = self._cheap_curves.get(one.trial)
        score = one.metrics.get(self.metric) if one.status == "completed" else None
        return TrialResult(
            number=one.trial,
            seeds=one.seeds,
            status=one.status,
            epoch=one.epoch,
            values=one.values,
            metrics={name: found.mean for name, found in one.metrics.items()},
            score=None if score is None else score.mean,
            std=None if score is None else score.std,
            last=None if curve is None or not len(curve.trained) else float(curve.trained[-1]),
            untrained=self._goal_untrained.get(one.trial),
            error=one.error,
        )


def _finite(rows: pa.Table, metric: str) -> dict[int, float]:
    """Return the numbers of a metric by seed."""
    pairs = zip(rows["seed"].to_pylist(), rows[metric_column(metric)].to_pylist(), strict=True)
    return {seed: score for seed, score in pairs if is_number(score)}


def _held(record: StudyRecord, rows: Sequence[Mapping[str, Any]]) -> FinalRuns:
    """Return the final runs of a study from all its rows."""
    completed = [dict(row) for row in rows if row["status"] == "completed"]
    failed = sum(row["status"] == "failed" for row in rows)
    return FinalRuns(record.name, completed, failed, held=len(completed) + failed)


def read_study(store: ResultsStore, name: str) -> StudyData:
    """Read a study, and its final runs if there are any.

    Raises:
        InputError: the study holds final runs; the report of the searched study shows them.
        StoreError: there is no such study.
    """
    record = store.study(name)
    if record.is_final:
        searched = record.searched_study
        there = searched in study_names(store.location)
        folder = store.location.uri
        shown = report_command(searched, folder) if there else show_command(name, folder)
        gone = "" if there else f", because the searched study {searched} is gone"
        raise InputError(f"study {name} holds final runs; `{shown}` shows them{gone}")
    read_at, state = datetime.now(UTC), store.state(name)
    finals = final_records(store, name)
    first = finals[0] if finals else None
    tables = store.tables(name)
    return StudyData(
        record=record,
        state=state,
        read_at=read_at,
        rows=tables.trials,
        epochs=tables.epochs,
        final_record=first,
        final_rows=[] if first is None else store.trials(first.name).to_pylist(),
        other_finals=[(one, _held(one, store.trials(one.name).to_pylist())) for one in finals[1:]],
        damaged=tables.damaged,
        results=store.location.uri,
    )
