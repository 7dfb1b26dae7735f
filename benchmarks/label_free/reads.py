"""What the records of `benchmarks.label_free` say: rank correlations, choices, the untrained encoder's place.

Scores are taken as merits, of which the larger is better: alignment and uniformity with their sign turned.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from contrasweep.tuning.methods.metrics import LABEL_FREE
from contrasweep.tuning.results.best import merit
from contrasweep.tuning.results.collapse import collapse_seen
from contrasweep.tuning.statistics import (
    Floats,
    binomial_noise,
    holm,
    percentile_interval,
    rank_correlation,
    rank_correlation_interval,
    signed_rank_p,
    standard_ranks,
)

RESAMPLES: Final = 2000

SEARCHED: Final = {"views.min_crop": "min_crop", "optimizer.lr": "rate"}
"""Searched values that become columns, by the names that the space has for them."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Correlation:
    """Spearman's rho of two columns of n trials, with its 95 % interval."""

    rho: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Encoders:
    """Completed trials of one dataset: of one method, or of several.

    Attributes:
        dataset: its name with options.
        rows: the records of the trials, in the order of methods and trials.
    """

    dataset: str
    rows: tuple[Row, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, in the order of the records."""
        return tuple(dict.fromkeys(row["method"] for row in self.rows))

    @cached_property
    def accuracy(self) -> Floats:
        """The hidden accuracy of each trial."""
        return self.column("accuracy")

    def column(self, name: str) -> Floats:
        """Return a column of the records as numbers, NaN where a trial has none."""
        return np.array([row[name] for row in self.rows], dtype=np.float64)

    def merits(self, score: str, *, untrained: bool = False) -> Floats:
        """Return the merit of a score or another column of each trial, or of its encoder before training."""
        name = f"untrained_{score}" if untrained else score
        return np.array([merit(name, row[name]) for row in self.rows], dtype=np.float64)

    @cached_property
    def drawn(self) -> NDArray[np.intp]:
        """Places of trials, (1 + resamples, n): the trials as they are, then resampled within their methods.

        Methods were chosen, trials were drawn: so trials are drawn again among those of their method.
        """
        rng = np.random.default_rng(0)
        strata = np.array([row["method"] for row in self.rows])
        own = [np.flatnonzero(strata == method) for method in self.methods]
        again = [places[rng.integers(len(places), size=(RESAMPLES, len(places)))] for places in own]
        return np.vstack([np.arange(len(self.rows)), np.hstack(again)])

    def correlations(self, first: str, second: str) -> Floats:
        """Return Spearman's rho of two columns, in each row of `drawn`."""
        return np.asarray((self._ranks(first) * self._ranks(second)).sum(axis=-1))

    def _ranks(self, name: str) -> Floats:
        if name not in self._known_ranks:
            self._known_ranks[name] = standard_ranks(self.merits(name)[self.drawn])
        return self._known_ranks[name]

    @cached_property
    def _known_ranks(self) -> dict[str, Floats]:
        return {}

    @property
    def collapsed(self) -> NDArray[np.bool_]:
        """Which trials are called collapsed, by scores that need no label."""
        found = [{f"val.{score}": row[score] for score in LABEL_FREE} for row in self.rows]
        return np.array([collapse_seen(scores) is not None for scores in found])

    @property
    def ruined(self) -> NDArray[np.bool_]:
        """Which trials have less than half of the accuracy that their encoder had before training."""
        return self.accuracy < self.column("untrained_accuracy") / 2

    def of(self, method: str) -> "Encoders":
        """Return the trials of one method."""
        return Encoders(self.dataset, tuple(row for row in self.rows if row["method"] == method))

    def without(self, left_out: NDArray[np.bool_]) -> "Encoders":
        """Return the trials that are not left out."""
        pairs = zip(self.rows, left_out, strict=True)
        return Encoders(self.dataset, tuple(row for row, out in pairs if not out))


def encoders_of(rows: Sequence[Row]) -> list[Encoders]:
    """Return the completed trials of each dataset, with their smallest crop and learning rate as columns."""
    datasets = dict.fromkeys(row["dataset"] for row in rows)
    ended = [
        {**row, **{column: json.loads(row["values"])[name] for name, column in SEARCHED.items()}}
        for row in rows
        if row["status"] == "completed"
    ]
    return [Encoders(name, tuple(row for row in ended if row["dataset"] == name)) for name in datasets]


@dataclass(frozen=True)
class Study:
    """The records: completed trials by dataset, all rows, and what the trials of a dataset have in common."""

    encoders: tuple[Encoders, ...]
    rows: tuple[Mapping[str, Any], ...]
    setups: Mapping[str, Mapping[str, Any]]
    versions: Mapping[str, str]

    @property
    def pairs(self) -> list[Encoders]:
        """The completed trials of each dataset and method."""
        return [one.of(method) for one in self.encoders for method in one.methods]

    @property
    def coloured(self) -> list[Encoders]:
        """The completed trials of the datasets with colours."""
        return [one for one in self.encoders if np.isfinite(one.column("colour_mse")).all()]


def read_study(path: Path) -> Study:
    """Read the kept records."""
    table = pq.read_table(path)
    rows = tuple(table.to_pylist())
    kept = {name.decode(): json.loads(text) for name, text in table.schema.metadata.items()}
    return Study(tuple(encoders_of(rows)), rows, kept["datasets"], kept["versions"])


def over_methods(one: Encoders, first: str, second: str, aside: str | None = None) -> Correlation:
    """Return rho of two columns over the trials of all methods, with the bootstrap interval within methods.

    Args:
        one: the trials of a dataset.
        first, second: names of columns, taken as merits.
        aside: a column that is held fixed: rho is then the partial rank correlation.
    """
    rho = one.correlations(first, second)
    if aside is not None:
        with_first, with_second = one.correlations(first, aside), one.correlations(second, aside)
        # Of a few trials, all of a resample may be one: nothing is left of the other columns then.
        left = np.sqrt(np.maximum((1 - with_first**2) * (1 - with_second**2), 0))
        rho = np.divide(rho - with_first * with_second, left, out=np.zeros_like(rho), where=left > 1e-6)
    low, high = percentile_interval(rho[1:])
    return Correlation(float(rho[0]), float(low), float(high), len(one.rows))


def within_method(one: Encoders, score: str) -> Correlation:
    """Return rho of a score with the accuracy over the trials of one method, with Fisher's interval."""
    rho = float(rank_correlation(one.merits(score), one.accuracy))
    return Correlation(rho, *rank_correlation_interval(rho, len(one.rows)), len(one.rows))


def mean_of_methods(one: Encoders, first: str, second: str) -> float:
    """Return the mean over the methods of rho within each, of two columns taken as merits."""
    own = [one.of(method) for method in one.methods]
    return float(np.mean([rank_correlation(each.merits(first), each.merits(second)) for each in own]))


def above(found: Sequence[Correlation], least: float) -> str:
    """Return whether all correlations are above a number: yes, no or undecided, as their intervals say."""
    if all(one.low > least for one in found):
        return "yes"
    return "no" if any(one.high < least for one in found) else "undecided"


@dataclass(frozen=True)
class Choice:
    """The trial that a score chooses among some, the earliest where several have the best score.

    Attributes:
        row: its record.
        lost: the best accuracy among the trials minus its own.
        random: what a trial picked at random loses on average.
    """

    row: Row
    lost: float
    random: float


def chosen(one: Encoders, score: str) -> Choice:
    """Return the choice by a score among all trials of `one`."""
    place = int(np.argmax(one.merits(score)))
    best = float(one.accuracy.max())
    return Choice(one.rows[place], best - float(one.accuracy[place]), best - float(one.accuracy.mean()))


@dataclass(frozen=True)
class Cost:
    """What choosing by a score loses over the pairs of dataset and method.

    Attributes:
        lost, random: the mean loss of the chosen trial, and of a trial picked at random.
        worst: the largest loss of a chosen trial.
        better: in how many pairs the chosen trial loses less than the random one.
        pairs: how many pairs there are.
        p: of Wilcoxon's signed-rank test that both lose alike, corrected by Holm for the scores.
    """

    lost: float
    random: float
    worst: float
    better: int
    pairs: int
    p: float


def costs(pairs: Sequence[Encoders]) -> dict[str, Cost]:
    """Return by score what choosing by it loses; `pairs` are the trials of each dataset and method."""
    found = {score: [chosen(one, score) for one in pairs] for score in LABEL_FREE}
    # The loss by chance and by the score, (2, pairs).
    losses = {score: np.array([[one.random, one.lost] for one in own]).T for score, own in found.items()}
    ps = holm([signed_rank_p(*both) for both in losses.values()])
    return {
        score: Cost(
            float(np.mean([one.lost for one in own])),
            float(np.mean([one.random for one in own])),
            max(one.lost for one in own),
            int(np.count_nonzero(losses[score][0] > losses[score][1])),
            len(own),
            p,
        )
        for (score, own), p in zip(found.items(), ps, strict=True)
    }


def beaten_by_untrained(one: Encoders, score: str) -> float:
    """Return the share of trials whose score is worse than that of their encoder before training."""
    return float(np.mean(one.merits(score, untrained=True) > one.merits(score)))


def chance_share(one: Encoders, images: int) -> float:
    """Return the share of the accuracies' variance that the choice of held-out images can explain.

    It is the mean binomial variance of an accuracy over the variance of the accuracies, at most 1: an upper
    bound, because all encoders of a dataset are scored on the same images. Rank correlations with the
    accuracy may fall short of 1 by this alone.

    Args:
        one: the trials.
        images: how many images were held out.
    """
    share = one.accuracy
    return min(1.0, float(np.mean(share * (1 - share) / images) / share.var(ddof=1)))


def noise(one: Encoders, images: int) -> float:
    """Return by how much the best accuracy is uncertain: half the width of its interval."""
    return binomial_noise(float(one.accuracy.max()), images)
