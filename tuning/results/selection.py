"""Select the best trials of a stored study, by their scores on the validation split."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from contrasweep.names import with_capital
from contrasweep.notebook_tables import html_table
from contrasweep.search_spaces import Scalar
from contrasweep.tuning.errors import InputError, SweepFailed
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.experiment.conditions import (
    Condition,
    all_hold,
    appended,
    broken_by,
    in_words,
)
from contrasweep.tuning.limits import check_count
from contrasweep.tuning.methods.metrics import condition_on
from contrasweep.tuning.results.best import (
    beats,
    best_final,
    best_name,
    best_order,
    merit,
    not_beaten_in_words,
    pareto_front,
    ranked,
    rule_in_words,
)
from contrasweep.tuning.results.columns import score_columns, texts
from contrasweep.tuning.results.commands import resume_hint, show_command
from contrasweep.tuning.results.failures import common_error
from contrasweep.tuning.results.noise import images_behind
from contrasweep.tuning.results.numbers import cell_text, number_text
from contrasweep.tuning.results.trials import TrialOutcome, experiment_of, trial_outcomes, untrained_scores
from contrasweep.tuning.statistics import ROUNDING, binomial_noise
from contrasweep.tuning.store import ResultsStore, SearchRecord, StudyRecord

ACCURACY = "val.accuracy"
"""Any accuracy, of which the highest is the best."""

MOST_TIES = 10
"""How many trials that tie with the best are named."""


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
    check_count("top", top)
    record = store.study(study)
    search = record.require_search()
    given = [condition_on(text, record.columns.metrics) for text in where]
    conditions = tuple(dict.fromkeys((*search.keep, *given)))
    tables = store.tables(study)
    done = _completed(tables.trials, record)
    if not done:
        hint = resume_hint(record.method, study, store.location.uri, store.state(study))
        told = f"no trial of study {study} has completed{_yet(tables.trials)}, so there is no best one"
        without = sum(one.status == "completed" for one in trial_outcomes(tables.trials, record))
        if without:
            told = (
                f"{without} completed trials of study {study} have no finite {' and '.join(search.metrics)}, "
                "so there is no best one"
            )
        raise SweepFailed(f"{told}. {hint}" if hint else told)
    kept = _keeping(done, conditions)
    if not kept:
        raise SweepFailed(none_keeps_in_words(study, done, conditions))
    kept = _in_order(search.metrics, kept)
    front = _front(search.metrics, kept)
    taken = kept[: (len(front) or 1) if top is None else top]
    controls = untrained_scores(tables.epochs, record, record.metric)
    return SelectedTrials(
        replace(
            _selected(one, record, store, controls),
            on_front=one.trial in front,
            rule=rule_of(search, conditions),
            conditions=conditions,
        )
        for one in taken
    )


def trial_of_number(store: ResultsStore, study: str, number: int) -> SelectedTrial:
    """Return a completed trial by its number, such as one that ties with the best.

    It may break the conditions of the search.

    Raises:
        InputError: there is no such trial, it has not completed, or the study has final runs.
        StoreError: there is no such study.
    """
    record = store.study(study)
    record.require_search()
    tables = store.tables(study)
    completed = {one.trial: one for one in _completed(tables.trials, record)}
    if number not in completed:
        ends = {one.trial: one.status for one in trial_outcomes(tables.trials, record)}
        told = f"study {study} has no trial {number}"
        if number in ends:
            told = f"trial {number} of study {study} is {ends[number]}"
        show = show_command(study, store.location.uri)
        raise InputError(f"{told}; allowed: a completed trial, `{show}` lists them")
    found = _selected(
        completed[number], record, store, untrained_scores(tables.epochs, record, record.metric)
    )
    front = front_among(tables.trials, record)
    return replace(found, on_front=number in front, rule="asked for by its number")


def _selected(
    one: TrialOutcome, record: StudyRecord, store: ResultsStore, controls: Mapping[int, float]
) -> SelectedTrial:
    root = record.require_search().data_root
    return SelectedTrial(
        study=record.name,
        trial=one.trial,
        values=dict(one.values),
        experiment=experiment_of(record, one.values),
        metric=record.metric,
        score=one.metrics[record.metric].mean,
        untrained=controls.get(one.trial),
        metrics={name: found.mean for name, found in one.metrics.items()},
        std=one.metrics[record.metric].std,
        seeds=record.seeds,
        results=store.location.uri,
        data_root=None if root is None else Path(root),
    )


def best_completed(trials: pa.Table, record: StudyRecord) -> tuple[int, float] | None:
    """Return the best completed trial of a search, and its final score; None if there is none.

    A trial that breaks a condition of the search is not among them, here and below.

    Args:
        trials: the study's table of trials.
        record: its record.
    """
    first = next(iter(_in_order(record.require_search().metrics, _candidates(trials, record))), None)
    return None if first is None else (first.trial, first.metrics[record.metric].mean)


def ranked_trials(trials: pa.Table, record: StudyRecord) -> list[int]:
    """Return the completed trials of a search by number, in the order of `best_trials`."""
    metrics = record.require_search().metrics
    return [one.trial for one in _in_order(metrics, _candidates(trials, record))]


def final_scores(store: ResultsStore, study: str) -> dict[int, float]:
    """Return the final score of each completed trial of a search, by its number."""
    return _final_scores(store.trials(study), store.study(study))


def ties_of_best(scores: Mapping[int, float], images: int) -> tuple[Sequence[int], float]:
    """Return the trials that cannot be told from the best one, and the noise of its score.

    Args:
        scores: the final accuracies of completed trials.
        images: how many validation images each was scored on.
    """
    best = best_final(scores, ACCURACY)
    if best is None:
        return (), 0.0
    noise = binomial_noise(best[1], images)
    ranked = sorted(scores, key=lambda trial: best_order(trial, scores[trial], ACCURACY))
    # One image less than the best can be exactly the noise, and differ from it by rounding.
    least = best[1] - noise * (1 + ROUNDING)
    return [trial for trial in ranked if trial != best[0] and scores[trial] >= least], noise


def ties_in_words(study: StudyRecord, scores: Mapping[int, float]) -> str:
    """Say which completed trials cannot be told from the best one; empty unless one accuracy is maximised.

    Args:
        study: its record; one that does not know its number of validation images gives nothing.
        scores: the final score of each completed trial.
    """
    images = images_behind(study.require_search())
    if images is None or not scores:
        return ""
    tied, noise = ties_of_best(scores, images)
    within = f"within {noise:.2g}, the noise of {images:,} validation images"
    if not tied:
        return f"No other completed trial comes {within}." if len(scores) > 1 else ""
    shown = ", ".join(map(str, tied[:MOST_TIES])) + (" ..." if len(tied) > MOST_TIES else "")
    return f"{f'Trials {shown} tie' if len(tied) > 1 else f'Trial {shown} ties'} with the best: {within}."


def _final_scores(trials: pa.Table, record: StudyRecord) -> dict[int, float]:
    return {one.trial: one.metrics[record.metric].mean for one in _candidates(trials, record)}


def front_among(trials: pa.Table, record: StudyRecord) -> frozenset[int]:
    """Return the completed trials on the Pareto front; an empty set where the study has one metric.

    Args:
        trials: the study's table of trials.
        record: the study.
    """
    metrics = record.require_search().metrics
    return _front(metrics, _candidates(trials, record)) if len(metrics) > 1 else frozenset()


def no_best_in_words(trials: pa.Table, record: StudyRecord) -> str:
    """Say why a study has no best trial: none has completed, or none of those keeps its conditions."""
    completed = _completed(trials, record)
    if not completed:
        return "no trial has completed yet"
    return none_keeps_in_words(record.name, completed, record.require_search().keep)


def _yet(trials: pa.Table) -> str:
    """Return why no trial has completed: all have failed, or they have yet to end."""
    if set(trials["status"].to_pylist()) != {"failed"}:
        return " yet"
    error = common_error(trials["error"].to_pylist())
    return " yet" if error is None else f", all have failed: {error}"


def none_keeps_in_words(
    study: str, completed: Sequence[TrialOutcome], conditions: Sequence[Condition]
) -> str:
    """Say that no completed trial keeps the conditions, and which comes nearest: by the sum of violations."""

    def beyond(one: TrialOutcome) -> tuple[float, int]:
        return broken_by(this.violation(one.mean(this.metric)) for this in conditions), one.trial

    nearest = min(completed, key=beyond)
    has = {this.metric: nearest.mean(this.metric) for this in conditions}
    shown = ", ".join(f"{metric} {cell_text(value)}" for metric, value in has.items())
    return (
        f"none of the {len(completed)} completed trials of study {study} keeps {in_words(conditions)}; "
        f"the nearest is trial {nearest.trial} ({shown})"
    )


def kept_trials(trials: pa.Table, record: StudyRecord) -> frozenset[int]:
    """Return the completed trials that keep all conditions of their search."""
    return frozenset(one.trial for one in _candidates(trials, record))


def breaking_trials(trials: pa.Table, record: StudyRecord) -> frozenset[int]:
    """Return the completed trials that break a condition of their search."""
    return frozenset(one.trial for one in _completed(trials, record)) - kept_trials(trials, record)


def _candidates(trials: pa.Table, record: StudyRecord) -> list[TrialOutcome]:
    return _keeping(_completed(trials, record), record.require_search().keep)


def _keeping(completed: Sequence[TrialOutcome], conditions: Collection[Condition]) -> list[TrialOutcome]:
    return [one for one in completed if all_hold(conditions, one.mean)]


def _completed(trials: pa.Table, record: StudyRecord) -> list[TrialOutcome]:
    metrics = record.require_search().metrics
    return [
        one
        for one in trial_outcomes(trials, record)
        if one.status == "completed" and all(metric in one.metrics for metric in metrics)
    ]


def _front(metrics: Sequence[str], candidates: Sequence[TrialOutcome]) -> frozenset[int]:
    if len(metrics) == 1:
        return frozenset()
    points = [_merits(metrics, one) for one in candidates]
    return frozenset(candidates[place].trial for place in pareto_front(points))


def _in_order(metrics: Sequence[str], candidates: Iterable[TrialOutcome]) -> list[TrialOutcome]:
    """Return trials, the best first."""
    by_number = {one.trial: one for one in candidates}
    merits = {number: _merits(metrics, one) for number, one in by_number.items()}
    return [by_number[number] for number in ranked(merits)]


def _merits(metrics: Sequence[str], one: TrialOutcome) -> list[float]:
    return [merit(metric, one.metrics[metric].mean) for metric in metrics]


def rule_of(search: SearchRecord, conditions: Sequence[Condition] | None = None) -> str:
    """Return in words what the best trial of a search has; `conditions` replace those of the search."""
    first, *others = search.metrics
    mean = f" (mean of {search.seeds} seeds)" if search.seeds > 1 else ""
    front = f" and on the Pareto front of {', '.join(search.metrics)}" if others else ""
    return rule_in_words(first, mean) + front + appended(search.keep if conditions is None else conditions)


def data_root_of(given: Path | None, searched: Path | None) -> Path | None:
    """Return the folder of the datasets: the `given` one, else that of the search, if this machine has it."""
    return searched if given is None and searched is not None and searched.is_dir() else given
