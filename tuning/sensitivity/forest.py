"""The surrogate: a forest of boosted trees that predicts the score from the parameters, with standard errors.

Boosted trees (Friedman 2001) follow cliffs (a rate above which training collapses) as well as slopes. Each
tree is fitted on the residuals of the trees before it, so the forest finds interactions without main effects.
A random forest hardly finds them, because each of its trees begins with the largest effect. The leaves are
boxes, so averages over parameters are exact sums.

Standard errors come from forests that are fitted on halves of the trials. The spread of a statistic over
half-samples drawn without replacement equals its sampling spread on the whole (the delete-half jackknife,
Shao and Wu 1989). Halves come in complementary pairs, so that one half can judge a choice of the other.
Where scores are estimated, each half takes another draw of them: their uncertainty adds to the spread
(multiple imputation, Rubin 1987).

What chance gives comes from forests that are fitted on permuted data. For parameters, the scores are
permuted. For pairs, only what an additive model leaves of them is permuted (Freedman and Lane 1983): trees
make small interactions of additive effects, which permuted scores no longer have.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import joblib
import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingRegressor

from contrasweep.tuning.search.axes import Axis, Stratum, design
from contrasweep.tuning.sensitivity.scores import ScoredTrials
from contrasweep.tuning.statistics import Floats

TREES: Final = 200
DEPTH: Final = 4
LEARNING_RATE: Final = 0.08
PAIRS: Final = 12
ADDITIVE_PAIRS: Final = 2
"""Of halves, for the residuals of an additive model. Two give every trial two predictions by others."""

PERMUTATIONS: Final = 19
"""What exceeds all of 19 permutations has p = 1 / 20."""

MOST_TRIALS: Final = 1500
"""A larger study is thinned to this many trials at random: the curves change by less than their bands."""


@dataclass(frozen=True)
class Forest:
    """A surrogate. Trees are fitted when they are first used.

    Attributes:
        axes, strata: of the study.
        trials: the trials that it is fitted on.
        members: the trials of each half, (halves, trials); rows 2i and 2i + 1 are complementary.
    """

    axes: tuple[Axis, ...]
    strata: tuple[Stratum, ...]
    trials: ScoredTrials
    members: NDArray[np.bool_]

    @cached_property
    def whole(self) -> Any:
        """Trees fitted on all trials."""
        return _fit_trees(self._columns, self.trials.score, len(self.members))

    @cached_property
    def halves(self) -> tuple[Any, ...]:
        """Trees fitted on each half."""
        return _fit_each([(self._columns[rows], self._drawn(i)[rows]) for i, rows in enumerate(self.members)])

    @cached_property
    def shuffled(self) -> tuple[Any, ...]:
        """Trees fitted on permuted scores: they show which effects arise by chance."""
        rng = np.random.default_rng(0)
        scores = [rng.permutation(self.trials.score) for _ in range(PERMUTATIONS)]
        return _fit_each([(self._columns, score) for score in scores])

    @cached_property
    def additive(self) -> tuple[Any, ...]:
        """Trees fitted on scores without interactions: they show which interactions arise by chance.

        The scores are those of an additive model plus its permuted residuals.
        """
        score, halves = self.trials.score, self.members[: 2 * ADDITIVE_PAIRS]
        parts = [np.ones(len(score), dtype=bool), *halves]
        whole, *fitted = [
            trees.predict(self._columns)
            for trees in _fit_each([(self._columns[rows], score[rows]) for rows in parts], depth=1)
        ]
        # Residuals of trials that the model has seen are too small.
        rest = score - np.nanmean(np.where(halves, np.nan, fitted), axis=0)
        rng = np.random.default_rng(0)
        return _fit_each([(self._columns, whole + rng.permutation(rest)) for _ in range(PERMUTATIONS)])

    @cached_property
    def r2(self) -> float:
        """The share of the scores' variance that halves predict on the other trials; 0 or less means none."""
        # Judged by other draws than those it was fitted on, an estimate is as uncertain as it is.
        score = self._drawn(len(self.members))
        variance = float(score.var())
        return 1 - float(np.mean((self._predicted - score) ** 2)) / variance if variance > 0 else 0.0

    @property
    def error(self) -> float:
        """The root mean square error of halves on measured scores of the other trials."""
        return float(np.sqrt(np.mean((self._predicted - self.trials.score)[~self.trials.estimated] ** 2)))

    @cached_property
    def best(self) -> Floats:
        """The trials' configuration with the highest predicted score, in units, (axes,)."""
        return np.asarray(self.trials.codes[int(np.argmax(self.predict(self.trials.codes)))])

    @cached_property
    def _predicted(self) -> Floats:
        """The score of each trial as the halves without it predict it."""
        predicted = np.where(self.members, np.nan, self.predict_halves(self.trials.codes))
        return np.asarray(np.nanmean(predicted, axis=0))

    def _drawn(self, place: int) -> Floats:
        """Return the scores with the estimates as drawn at a place; each half takes its own."""
        return np.asarray(self.trials.draws[place % len(self.trials.draws)])

    @cached_property
    def _columns(self) -> NDArray[np.float32]:
        return design(self.axes, self.trials.codes)

    def predict(self, codes: Floats) -> Floats:
        """Return the score at each row of values in units, (n,)."""
        return np.asarray(self.whole.predict(design(self.axes, codes)), dtype=np.float64)

    def predict_halves(self, codes: Floats) -> Floats:
        """Return each half's prediction, (halves, n)."""
        columns = design(self.axes, codes)
        return np.stack([half.predict(columns) for half in self.halves])


def fit_forest(axes: tuple[Axis, ...], strata: tuple[Stratum, ...], trials: ScoredTrials) -> Forest:
    """Return the surrogate of the trials' scores; it takes at least four trials and one axis."""
    rng = np.random.default_rng(0)
    kept = _thinned(trials, rng)
    return Forest(axes, strata, kept, _halves(len(kept), rng))


def _thinned(trials: ScoredTrials, rng: np.random.Generator) -> ScoredTrials:
    if len(trials) <= MOST_TRIALS:
        return trials
    # The defaults stay, because gains are measured from them.
    rows = np.union1d(rng.permutation(len(trials))[:MOST_TRIALS], np.flatnonzero(trials.is_default))
    return trials.some(rows)


def _halves(count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    members = np.zeros((2 * PAIRS, count), dtype=bool)
    for first in range(0, 2 * PAIRS, 2):
        members[first, rng.permutation(count)[: count // 2]] = True
        members[first + 1] = ~members[first]
    return members


def _fit_trees(columns: NDArray[np.float32], score: Floats, seed: int, depth: int = DEPTH) -> Any:
    boosted = GradientBoostingRegressor(
        n_estimators=TREES,
        max_depth=depth,
        learning_rate=LEARNING_RATE,
        subsample=0.7,
        min_samples_leaf=3,
        random_state=seed,
    )
    # Checking the arguments of every tree takes as long as growing it.
    with sklearn.config_context(skip_parameter_validation=True, assume_finite=True):
        return boosted.fit(columns, score)


def _fit_each(data: Sequence[tuple[NDArray[np.float32], Floats]], depth: int = DEPTH) -> tuple[Any, ...]:
    """Fit trees on each pair of columns and scores, with the place of the pair as the seed.

    Threads suffice, because trees grow without holding Python's lock.
    """
    with ThreadPoolExecutor(min(len(data), joblib.cpu_count())) as threads:
        return tuple(threads.map(lambda place: _fit_trees(*data[place], place, depth), range(len(data))))


def spread(halves: Floats) -> Floats:
    """Return the standard error of a statistic from its values on the halves, (halves, ...)."""
    return np.asarray(halves.std(axis=0, ddof=1))
