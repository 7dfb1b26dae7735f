"""The trials of a search that can be selected: which they are, in which order, and what they leave open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from contrasweep.names import with_capital
from contrasweep.tuning.experiment.conditions import Condition, all_hold, broken_by, in_words
from contrasweep.tuning.results.best import best_final, best_order, merit, pareto_front, ranked
from contrasweep.tuning.results.noise import images_behind
from contrasweep.tuning.results.numbers import cell_text
from contrasweep.tuning.results.trials import TrialOutcome, trial_outcomes
from contrasweep.tuning.statistics import ROUNDING, binomial_noise
from contrasweep.tuning.store import StudyRecord

ACCURACY = "val.accuracy"
"""Any accuracy, of which the highest is the best."""

MOST_TIES = 10
"""How many trials that tie with the best are named."""


@dataclass(frozen=True)
class Candidates:
    """The trials of a search that can be selected: completed with all its metrics, and within conditions.

    Attributes:
        record: the record of the search.
        outcomes: all its trials by number, selectable or not.
        conditions: what a trial has to keep.
    """

    record: StudyRecord
    outcomes: Sequence[TrialOutcome]
    conditions: Sequence[Condition]

    @cached_property
    def completed(self) -> Sequence[TrialOutcome]:
        """The trials that completed with all metrics of the search, by number, whatever they keep."""
        return [
            one
            for one in self.outcomes
            if one.status == "completed" and all(metric in one.metrics for metric in self._metrics)
        ]

    @cached_property
    def ranked(self) -> Sequence[TrialOutcome]:
        """The trials that can be selected, the best first."""
        by_number = {one.trial: one for one in self.completed if all_hold(self.conditions, one.mean)}
        merits = {number: self._merits(one) for number, one in by_number.items()}
        return [by_number[number] for number in ranked(merits)]

    @cached_property
    def front(self) -> frozenset[int]:
        """Those of them on the Pareto front, by number; an empty set where the search has one metric."""
        if len(self._metrics) == 1:
            return frozenset()
        places = pareto_front([self._merits(one) for one in self.ranked])
        return frozenset(self.ranked[place].trial for place in places)

    @cached_property
    def breaking(self) -> frozenset[int]:
        """The completed trials that break a condition, by number."""
        return frozenset(one.trial for one in self.completed) - self.scores.keys()

    @cached_property
    def scores(self) -> Mapping[int, float]:
        """The final score of each trial that can be selected, by its number; the best first."""
        return {one.trial: one.metrics[self.record.metric].mean for one in self.ranked}

    def keeping(self, conditions: Sequence[Condition]) -> "Candidates":
        """Return the candidates by other conditions."""
        return replace(self, conditions=conditions)

    @property
    def no_best(self) -> str:
        """Why there is none to select, as a sentence without its full stop."""
        if self.completed:
            return with_capital(self.none_keeps)
        if any(one.status == "completed" for one in self.outcomes):
            return f"No completed trial has a number for {' and '.join(self._metrics)}"
        return "No trial has completed yet"

    @property
    def none_keeps(self) -> str:
        """That no completed trial keeps the conditions, and which is nearest: by the sum of violations."""

        def beyond(one: TrialOutcome) -> tuple[float, int]:
            return broken_by(this.violation(one.mean(this.metric)) for this in self.conditions), one.trial

        nearest = min(self.completed, key=beyond)
        has = {this.metric: nearest.mean(this.metric) for this in self.conditions}
        shown = ", ".join(f"{metric} {cell_text(value)}" for metric, value in has.items())
        return (
            f"none of the {len(self.completed)} completed trials of study {self.record.name} keeps "
            f"{in_words(self.conditions)}; the nearest is trial {nearest.trial} ({shown})"
        )

    @property
    def ties_in_words(self) -> str:
        """Which of them cannot be told from the best one; empty unless one accuracy is maximised.

        A record that does not know its number of validation images gives nothing.
        """
        images = images_behind(self.record.require_search())
        if images is None or not self.scores:
            return ""
        tied, noise = ties_of_best(self.scores, images)
        within = f"within {noise:.2g}, the noise of {images:,} validation images"
        if not tied:
            return f"No other completed trial comes {within}." if len(self.scores) > 1 else ""
        shown = ", ".join(map(str, tied[:MOST_TIES])) + (" ..." if len(tied) > MOST_TIES else "")
        return f"{f'Trials {shown} tie' if len(tied) > 1 else f'Trial {shown} ties'} with the best: {within}."

    @property
    def _metrics(self) -> Sequence[str]:
        return self.record.require_search().metrics

    def _merits(self, one: TrialOutcome) -> list[float]:
        return [merit(metric, one.metrics[metric].mean) for metric in self._metrics]


def candidates_of(trials: pa.Table, record: StudyRecord) -> Candidates:
    """Return the trials that can be selected by the conditions of their search.

    Args:
        trials: the study's table of trials.
        record: its record.

    Raises:
        InputError: the study has final runs.
    """
    keep = record.require_search().keep
    return Candidates(record, trial_outcomes(trials, record), keep)


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
