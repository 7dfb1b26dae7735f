"""Select the best trials of a stored study, by their scores on the validation split."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from contrasweep.names import with_capital
from contrasweep.notebook_tables import html_table
from contrasweep.search_spaces import Scalar
from contrasweep.tuning.errors import InputError, SweepFailed
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.experiment.conditions import Condition, appended
from contrasweep.tuning.limits import check_count
from contrasweep.tuning.methods.metrics import condition_on
from contrasweep.tuning.results.best import beats, best_name, not_beaten_in_words, rule_in_words
from contrasweep.tuning.results.candidates import Candidates, candidates_of
from contrasweep.tuning.results.columns import score_columns, texts
from contrasweep.tuning.results.commands import resume_hint, show_command
from contrasweep.tuning.results.failures import common_error
from contrasweep.tuning.results.numbers import number_text
from contrasweep.tuning.results.trials import TrialOutcome, experiment_of, untrained_scores
from contrasweep.tuning.store import ResultsStore, SearchRecord, StudyRecord
from contrasweep.tuning.store.reader import StudyTables


@dataclass(frozen=True, repr=False)
class SelectedTrial:
    """A trial that was selected: its values, its experiment, its score and that of its untrained encoder.

    Scores are means over the search's `seeds`; `std` is the sample standard deviation of `score` over them.
    `on_front` says whether it is on the Pareto front of a search with several metrics; `rule` says how the
    first trial of the selection was chosen, `conditions` what it keeps. The trial is stored in the folder
    `results`, and was trained on the datasets in `data_root`.
    """

    study: str
    trial: int
    values: dict[str, Scalar]
    experiment: Experiment
    metric: str
    score: float
    untrained: float | None
    metrics: dict[str, float]
    std: float | None = None
    seeds: int = 1
    on_front: bool = False
    rule: str = ""
    conditions: tuple[Condition, ...] = ()
    results: str = "results"
    data_root: Path | None = None

    def __repr__(self) -> str:
        """Return the trial, its score, that of its untrained encoder, and its values."""
        untrained = "" if self.untrained is None else f", untrained {number_text(self.untrained)}"
        values = ", ".join(
            f"{name}={number_text(value)}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.values.items()
        )
        score = f"final {self.metric} {number_text(self.score)}{untrained}"
        return f"SelectedTrial({self.study} trial {self.trial}: {score}; {values})"

    def _repr_html_(self) -> str:
        """Return the trial as a table, for notebooks."""
        return SelectedTrials([self])._repr_html_()

    @property
    def columns(self) -> dict[str, Any]:
        """Its number and scores, as they are shown."""
        spread = (self.std, self.seeds) if self.seeds > 1 else None
        return score_columns(self.trial, self.metric, self.score, self.untrained, self.metrics, spread)

    @property
    def beats_untrained(self) -> bool:
        """Whether training improved the score over the encoder it started from."""
        return beats(self.metric, self.score, self.untrained)


class SelectedTrials(list[SelectedTrial]):
    """A list of selected trials, the best first; notebooks show it as a table."""

    def _repr_html_(self) -> str:
        """Return a row for each trial: its scores and values."""
        if not self:
            return html_table("No trial", [])
        first = self[0]
        notes = [f"Trial {first.trial} is the best: {first.rule}." if first.rule else ""]
        if not first.beats_untrained:
            notes.append(f"{with_capital(not_beaten_in_words(f'trial {first.trial}'))}.")
        rows = [texts({**one.columns, **one.values}) for one in self]
        return html_table(f"{first.study}: {best_name(first.metric)}", rows, *notes)


@dataclass(frozen=True)
class StoredSearch:
    """A search in a store, whose record and rows are read once, when they are first needed."""

    store: ResultsStore
    name: str

    @cached_property
    def record(self) -> StudyRecord:
        """Its record.

        Raises:
            InputError: the study has final runs.
            StoreError: there is no such study.
        """
        record = self.store.study(self.name)
        record.require_search()
        return record

    @cached_property
    def tables(self) -> StudyTables:
        """Its rows."""
        return self.store.tables(self.name)

    @cached_property
    def candidates(self) -> Candidates:
        """The trials that can be selected by the search's own conditions."""
        return candidates_of(self.tables.trials, self.record)

    def best(self, top: int | None = 1, where: Sequence[str] = ()) -> SelectedTrials:
        """Return the best completed trials, as `best_trials` does."""
        check_count("top", top)
        search = self.record.require_search()
        given = [condition_on(text, self.record.columns.metrics) for text in where]
        conditions = tuple(dict.fromkeys((*search.keep, *given)))
        found = self.candidates.keeping(conditions)
        if not found.completed:
            raise SweepFailed(self._none_completed)
        if not found.ranked:
            raise SweepFailed(found.none_keeps)
        rule = rule_of(search, conditions)
        return SelectedTrials(
            replace(self._selected(one), on_front=one.trial in found.front, rule=rule, conditions=conditions)
            for one in found.ranked[: (len(found.front) or 1) if top is None else top]
        )

    def select(self, top: int | None, where: Sequence[str], trial: int | None) -> SelectedTrials:
        """Return the best trials, or the one that is asked for by its number; errors as of these two."""
        return self.best(top, where) if trial is None else SelectedTrials([self.trial(trial)])

    def trial(self, number: int) -> SelectedTrial:
        """Return a completed trial by its number, such as one that ties with the best.

        It may break the conditions of the search.

        Raises:
            InputError: there is no such trial, it has not completed, or the study has final runs.
            StoreError: there is no such study.
        """
        found = next((one for one in self.candidates.completed if one.trial == number), None)
        if found is None:
            ends = {one.trial: one.status for one in self.candidates.outcomes}
            told = f"study {self.name} has no trial {number}"
            if number in ends:
                told = f"trial {number} of study {self.name} is {ends[number]}"
            show = show_command(self.name, self.store.location.uri)
            raise InputError(f"{told}; allowed: a completed trial, `{show}` lists them")
        on_front = number in self.candidates.front
        return replace(self._selected(found), on_front=on_front, rule="asked for by its number")

    def _selected(self, one: TrialOutcome) -> SelectedTrial:
        record = self.record
        root = record.require_search().data_root
        return SelectedTrial(
            study=self.name,
            trial=one.trial,
            values=dict(one.values),
            experiment=experiment_of(record, one.values),
            metric=record.metric,
            score=one.metrics[record.metric].mean,
            untrained=self._untrained.get(one.trial),
            metrics={name: found.mean for name, found in one.metrics.items()},
            std=one.metrics[record.metric].std,
            seeds=record.seeds,
            results=self.store.location.uri,
            data_root=None if root is None else Path(root),
        )

    @cached_property
    def _untrained(self) -> Mapping[int, float]:
        return untrained_scores(self.tables.epochs, self.record, self.record.metric)

    @property
    def _none_completed(self) -> str:
        """That no trial has completed with the metrics of the search, why, and how the search goes on."""
        metrics = self.record.require_search().metrics
        without = sum(one.status == "completed" for one in self.candidates.outcomes)
        told = (
            f"{without} completed trials of study {self.name} have no finite {' and '.join(metrics)}"
            if without
            else f"no trial of study {self.name} has completed{_yet(self.tables.trials)}"
        )
        state = self.store.state(self.name)
        hint = resume_hint(self.record.method, self.name, self.store.location.uri, state)
        return f"{told}, so there is no best one" + (f". {hint}" if hint else "")


def refuse_beside_trial(trial: int | None, top_given: bool, where: Sequence[str]) -> None:
    """Raise InputError where a trial is named and the best ones are asked for, too."""
    if trial is not None and (top_given or where):
        raise InputError(f"--trial {trial} names the trial: leave out {'--where' if where else '--top'}")


def best_trials(
    store: ResultsStore, study: str, top: int | None = 1, where: Sequence[str] = ()
) -> SelectedTrials:
    """Return the `top` completed trials with the best value of the study's metric, best first.

    Of equal scores, the earlier trial comes first. Where the study has several metrics, those on the Pareto
    front come before all others, by the first metric.

    Args:
        store: the store that has the study.
        study: its name.
        top: how many; None gives the best one, or the whole Pareto front.
        where: conditions such as `val.colour_mse>=2000`; a trial that breaks one does not count. The
            conditions of the search itself hold too.

    Raises:
        InputError: `top` is below 1, a condition cannot be read or names an unknown metric, or the study has
            final runs.
        SweepFailed: no trial of the study has completed, or no completed trial meets the conditions.
        StoreError: there is no such study.
    """
    return StoredSearch(store, study).best(top, where)


def _yet(trials: pa.Table) -> str:
    """Return why no trial has completed: all have failed, or they have yet to end."""
    if set(trials["status"].to_pylist()) != {"failed"}:
        return " yet"
    error = common_error(trials["error"].to_pylist())
    return " yet" if error is None else f", all have failed: {error}"


def rule_of(search: SearchRecord, conditions: Sequence[Condition] | None = None) -> str:
    """Return in words what the best trial of a search has; `conditions` replace those of the search."""
    first, *others = search.metrics
    mean = f" (mean of {search.seeds} seeds)" if search.seeds > 1 else ""
    front = f" and on the Pareto front of {' and '.join(search.metrics)}" if others else ""
    return rule_in_words(first, mean) + front + appended(search.keep if conditions is None else conditions)


def data_root_of(given: Path | None, searched: Path | None) -> Path | None:
    """Return the folder of the datasets: the `given` one, else that of the search, if this machine has it."""
    return searched if given is None and searched is not None and searched.is_dir() else given
