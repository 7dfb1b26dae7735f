"""Final runs: reading them from the store, and their scores beside those of the untrained encoders."""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from contrasweep.notebook_tables import html_table
from contrasweep.tuning.results.best import merit
from contrasweep.tuning.results.columns import (
    MEAN_AND_STD,
    difference_note,
    difference_rows,
    difference_title,
    summary_columns,
    summary_note,
    texts,
)
from contrasweep.tuning.results.numbers import number_text
from contrasweep.tuning.statistics import Comparison, Summary, compare_first, is_number, summarise
from contrasweep.tuning.store import (
    ResultsStore,
    StudyRecord,
    final_name,
    is_final_name,
    shown_name,
    study_names,
)
from contrasweep.tuning.store.schema import METRIC

log = logging.getLogger(__name__)

UNTRAINED = "untrained"
_UNTRAINED = f"{UNTRAINED}_"
_LABEL = "label"
_TESTED = f"{METRIC}test."
_UNTRAINED_METRICS = f"{_TESTED}{_UNTRAINED}"
SAME = 1e-6
"""The largest relative difference between scores of the same untrained network."""
_Row = Mapping[str, Any]
TrialSeed = tuple[int, int]
"""The trial and the seed of a final run."""


@dataclass(frozen=True, repr=False)
class FinalRuns:
    """The study that holds final runs, the rows of those that completed, and the number of the others.

    `held` counts the runs that the study held before: they were not trained again.
    """

    study: str
    rows: list[dict[str, Any]]
    failed: int
    held: int = 0

    def __repr__(self) -> str:
        """Return the study, the counts, and the main score of each encoder."""
        scores = (
            f"{one.encoder} {main_score(list(one.scores))} {number_text(one.accuracy.mean)}"
            for one in self.summaries
        )
        return (
            f"FinalRuns({self.study}: {len(self.rows)} completed, {self.failed} failed; {', '.join(scores)})"
        )

    def _repr_html_(self) -> str:
        """Return the scores over seeds, and how much better the first encoder is than the others."""
        names, compared = score_names(self.summaries), self.differences
        main = main_score(names) if names else ""
        rows = [texts(row) for row in summary_rows(self.summaries)]
        failed = f"Failed, and not counted: {self.failed} of the runs." if self.failed else ""
        shown = html_table(self.title, rows, summary_note(names), failed)
        differences = [texts(row) for row in difference_rows(compared)]
        if not differences:
            return shown
        return shown + html_table(difference_title(compared, main), differences, difference_note(compared))

    def beside(self, *others: "FinalRuns") -> "FinalRuns":
        """Return these runs with those of other studies: the first configuration against all others."""
        every = (self, *others)
        return FinalRuns(
            ", ".join(one.study for one in every),
            [row for one in every for row in one.rows],
            sum(one.failed for one in every),
            sum(one.held for one in every),
        )

    def labelled(self, labels: Mapping[tuple[str, int], str]) -> "FinalRuns":
        """Return these runs with other names of configurations, by the study of the runs and the trial."""
        rows = [{**row, _LABEL: labels.get((row["study"], row["trial"]))} for row in self.rows]
        return replace(self, rows=rows)

    @property
    def title(self) -> str:
        """What stands above a table of `summary_rows`."""
        return f"{self.study}: {MEAN_AND_STD}"

    @property
    def summaries(self) -> "list[FinalSummary]":
        """The scores over seeds of each configuration, then of the untrained encoders."""
        return summarise_runs(self.rows)

    @property
    def differences(self) -> list[Comparison]:
        """How much better the first configuration is than each of the others, seed by seed."""
        scores = scores_by_seed(self.rows)
        return compare_first(scores) if scores else []


def side_by_side(done: Sequence[FinalRuns]) -> FinalRuns:
    """Return the completed runs of studies together; at least one of the studies has some."""
    first, *others = (one for one in done if one.rows)
    return first.beside(*others)


def final_records(store: ResultsStore, searched: str) -> list[StudyRecord]:
    """Return the records of the final runs of a search: those of its own epochs, then the longest first.

    Final runs that began before the search are those of an earlier search with its name. They do not count,
    and a warning says so. Those of a search that is gone count.
    """
    names = [name for name in study_names(store.location) if is_final_name(name, searched)]
    finals = [one for one in map(store.study, names) if one.holds_runs_of(searched)]
    earlier = [one.name for one in finals if is_of_earlier_search(store, one)]
    for name in earlier:
        log.warning("%s is left out: its runs are of an earlier search named %s", name, searched)
    found = [one for one in finals if one.name not in earlier]
    return sorted(found, key=lambda one: (one.name != final_name(searched), -one.experiment.epochs))


def is_of_earlier_search(store: ResultsStore, final: StudyRecord) -> bool:
    """Return whether final runs began before the search that now has the name of theirs."""
    searched = final.searched_study
    return searched in study_names(store.location) and final.created < store.study(searched).created


def completed_rows(store: ResultsStore, study: str) -> dict[TrialSeed, dict[str, Any]]:
    """Return the rows of a final study's completed runs."""
    rows = store.trials(study).to_pylist()
    return {(row["trial"], row["seed"]): row for row in rows if row["status"] == "completed"}


@dataclass(frozen=True)
class FinalSummary:
    """Test scores over seeds by name: accuracies in 0..1, `colour_mse` in squared 8-bit levels."""

    encoder: str
    scores: Mapping[str, Summary]

    @property
    def accuracy(self) -> Summary:
        """Accuracy of the linear probe; on biased data averaged over the groups of (class, bias).

        Multi-label data has no accuracy; the first score, F1, takes its place.
        """
        return self.scores[main_score(list(self.scores))]


def summarise_runs(rows: Sequence[_Row]) -> list[FinalSummary]:
    """Return a summary of each configuration in `rows` of final studies, then of the untrained encoders.

    Configurations keep their order. Configurations with the same network share the untrained encoder of a
    seed, which counts once.
    """
    found = [_summary(*group) for group in _groups(rows)]
    return [summary for summary in found if summary is not None]


def scores_by_seed(rows: Sequence[_Row]) -> dict[str, dict[int, float]]:
    """Return the `accuracy` of each configuration by seed, then of the untrained encoders, named as above.

    Runs whose score is no finite number are left out.
    """
    found = {}
    for name, own, prefix in _groups(rows):
        summary = _summary(name, own, prefix)
        if summary is not None:
            column = prefix + main_score(list(summary.scores))
            found[name] = {row["seed"]: row[column] for row in own if is_number(row.get(column))}
    return found


def single_scores(rows: Sequence[_Row]) -> list[dict[str, Any]]:
    """Return every finite test score of every run, then those of the untrained encoders, a row for each.

    The columns are those of a file of runs for `contrasweep verify`: `row` (the encoder, named as in
    `summarise_runs`), `column` (the score), `seed`, `value`, and `untrained`, the score of the run's
    untrained encoder. It is None for untrained encoders themselves: a claim that names them compares with no
    training anyway, and needs no second test of that.
    """
    return [
        {
            "row": name,
            "column": score,
            "seed": run["seed"],
            "value": run[prefix + score],
            "untrained": run.get(_UNTRAINED_METRICS + score) if prefix == _TESTED else None,
        }
        for name, own, prefix in _groups(rows)
        for score in _scores_behind(prefix, own)
        for run in own
        if is_number(run.get(prefix + score))
    ]


def _scores_behind(prefix: str, rows: Sequence[_Row]) -> list[str]:
    """Return the names of the scores whose columns have this prefix, in their order."""
    columns = dict.fromkeys(column for row in rows for column in row if column.startswith(prefix))
    names = [column.removeprefix(prefix) for column in columns]
    return [name for name in names if not name.startswith(_UNTRAINED)]


def largest_gain(rows: Sequence[_Row], score: str) -> tuple[Summary, Summary] | None:
    """Return a test score of a configuration and of its own untrained encoder, where the first gains most.

    None where no configuration has both.
    """
    of_each = [summarise_runs(own) for own in _by_configuration(rows).values()]
    scores = [[one.scores[score] for one in both if score in one.scores] for both in of_each]
    pairs = [(own[0], own[1]) for own in scores if len(own) == 2]
    return max(pairs, key=lambda pair: merit(score, pair[0].mean) - merit(score, pair[1].mean), default=None)


def score_names(summaries: "Sequence[FinalSummary]") -> list[str]:
    """Return the names of the scores of encoders, in their order."""
    return list(dict.fromkeys(name for one in summaries for name in one.scores))


def summary_rows(summaries: "Sequence[FinalSummary]") -> list[dict[str, Any]]:
    """Return the table of encoders as commands, notebooks and pages show it: a row for each encoder."""
    names = score_names(summaries)
    return [summary_columns(one.encoder, one.scores, names, main_score(names)) for one in summaries]


def main_score(names: Sequence[str]) -> str:
    """Return the main test score among `names`: balanced accuracy, else accuracy, else the first."""
    preferred = [name for name in ("balanced_accuracy", "accuracy") if name in names]
    return [*preferred, *names][0]


def same_network(one: Mapping[Any, float], other: Mapping[Any, float]) -> bool:
    """Return whether untrained scores are those of one network: they agree wherever both have one.

    Scores that share no seed say nothing, so they count as those of two networks.
    """
    shared = one.keys() & other.keys()
    return bool(shared) and all(math.isclose(one[key], other[key], rel_tol=SAME) for key in shared)


def _groups(rows: Sequence[_Row]) -> list[tuple[str, list[_Row], str]]:
    """Return name, rows and prefix of the columns of each configuration, then of the untrained encoders."""
    trained = [(name, own, _TESTED) for name, own in _by_configuration(rows).items()]
    return trained + [(name, own, _UNTRAINED_METRICS) for name, own in _untrained(rows).items()]


def _by_configuration(rows: Sequence[_Row]) -> dict[str, list[_Row]]:
    studies = {row.get("study") for row in rows}
    found: dict[str, list[_Row]] = {}
    for row in rows:
        of_study = f" of {shown_name(str(row['study']))}" if len(studies) > 1 else ""
        name = row.get(_LABEL) or f"{row['method']}, trial {row['trial']}{of_study}"
        found.setdefault(name, []).append(row)
    return found


def _untrained(rows: Sequence[_Row]) -> dict[str, list[_Row]]:
    """One row a seed for each distinct untrained encoder; configurations with the same network share one."""
    networks: list[tuple[str, int, dict[tuple[int, str], float]]] = []
    for (study, trial), scores in _untrained_scores(rows).items():
        held = next((one for *_, one in networks if same_network(one, scores)), None)
        if held is None:
            networks.append((study, trial, scores))
        else:
            held.update(scores | held)
    found: dict[str, list[_Row]] = {}
    for place, (study, trial, scores) in enumerate(networks):
        by_seed: dict[int, dict[str, Any]] = {}
        for (seed, column), score in scores.items():
            by_seed.setdefault(seed, {"seed": seed})[column] = score
        found[_network_name(study, trial, [name for name, *_ in networks[:place]])] = [*by_seed.values()]
    return found


def _untrained_scores(rows: Sequence[_Row]) -> dict[tuple[str, int], dict[tuple[int, str], float]]:
    """Return the untrained scores of each study and trial, by seed and column."""
    found: dict[tuple[str, int], dict[tuple[int, str], float]] = {}
    for row in rows:
        for column, score in row.items():
            if column.startswith(_UNTRAINED_METRICS) and score is not None:
                own = found.setdefault((str(row.get("study")), row["trial"]), {})
                own[row["seed"], column] = score
    return found


def _network_name(study: str, trial: int, earlier: Sequence[str]) -> str:
    """Name an untrained encoder by its study, or by its trial where the study has one already."""
    if not earlier:
        return UNTRAINED
    of_study = f" of {shown_name(study)}" if set(earlier) != {study} else ""
    return f"{UNTRAINED} of trial {trial}{of_study}" if study in earlier else f"{UNTRAINED}{of_study}"


def _summary(name: str, rows: Sequence[_Row], prefix: str) -> FinalSummary | None:
    found = {
        score: summarise(row.get(prefix + score) for row in rows) for score in _scores_behind(prefix, rows)
    }
    scores = {score: summary for score, summary in found.items() if summary is not None}
    return FinalSummary(name, scores) if scores else None
