"""A Gaussian process of learning curves: final scores of configurations, from scores after few epochs.

The score of trial i with configuration x after a share u of its epochs (on a logarithmic scale, 1 at the end)
is a sum of three processes: an effect of the configuration, part of which is there from the first epoch on;
a mean curve of all trials; and an effect of the trial itself, which its seed causes and which lasts. Scores
of the configuration and of the trial grow or shrink towards the end by a common factor. This is the curve
model of freeze-thaw search (Swersky, Snoek and Adams 2014, section 3) with another kernel over time.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from contrasweep.tuning.statistics import Floats, Ints

MOST_FOR_SETTINGS: Final = 100
"""The settings are fitted to so many scores at most: the cost grows with their third power."""
ITERATIONS: Final = 25
ROUNDING: Final = 1e-6
"""Added to the variance of every score, so that equal configurations keep the matrix invertible."""


@dataclass(frozen=True)
class Scores:
    """Scores of trials on the scale of the model: mean about 0, standard deviation about 1.

    Attributes:
        columns: the configurations as `axes.design` gives them, (scores, columns).
        share: how far the trial had come, 0 after one epoch and 1 at its end, (scores,).
        trial: whose scores they are, (scores,).
        score: (scores,).
    """

    columns: Floats
    share: Floats
    trial: Ints
    score: Floats

    def __len__(self) -> int:
        return len(self.score)

    def at(self, rows: Any) -> "Scores":
        """Return some of the scores."""
        return Scores(self.columns[rows], self.share[rows], self.trial[rows], self.score[rows])

    def and_finals(self, columns: Floats, trial: Ints, score: Floats) -> "Scores":
        """Return these and the final scores of some trials."""
        return Scores(
            np.concatenate([self.columns, columns]),
            np.concatenate([self.share, np.ones(len(score))]),
            np.concatenate([self.trial, trial]),
            np.concatenate([self.score, score]),
        )


@dataclass(frozen=True)
class Settings:
    """The settings of the process. All but `growth` are logarithms, so that any real number is allowed.

    Attributes:
        lengths: over which the score changes by columns of the configuration, (columns,).
        lasting, changing: the variances of the configuration's effect.
        mean_curve: the variance of the mean curve.
        own: the variance of the trial's own effect.
        noise: the variance of a single score.
        memory: the share of the epochs over which changes are remembered.
        growth: effects after one epoch are exp(-growth) of those at the end.
    """

    lengths: Floats
    lasting: float = float(np.log(0.5))
    changing: float = float(np.log(0.3))
    mean_curve: float = float(np.log(0.5))
    own: float = float(np.log(0.05))
    noise: float = float(np.log(0.02))
    memory: float = float(np.log(0.7))
    growth: float = 1.0

    @classmethod
    def usual(cls, columns: int) -> "Settings":
        """Return what is expected before there are scores."""
        return cls(np.full(columns, np.log(0.7)))

    @classmethod
    def of_vector(cls, vector: Floats) -> "Settings":
        """Return the settings that `vector` wrote."""
        return cls(vector[:-7], *(float(one) for one in vector[-7:]))

    @property
    def vector(self) -> Floats:
        """All settings in a row."""
        rest = self.lasting, self.changing, self.mean_curve, self.own, self.noise, self.memory, self.growth
        return np.concatenate([self.lengths, rest])

    @property
    def spread(self) -> Floats:
        """The standard deviation of each setting's prior, a normal distribution about the usual one."""
        return np.concatenate([np.ones(len(self.lengths) + 5), [0.7, 0.7]])


@dataclass(frozen=True)
class _Pairs:
    """Two sets of scores, pair by pair: what their covariances depend on beside the settings.

    Attributes:
        first, second: the configurations of both sets, (first, columns) and (second, columns).
        lag: how far apart the shares are, (first, second).
        left: what both trials have left, as a negative number, (first, second).
        same: whether both scores are of one trial, (first, second).
    """

    first: Floats
    second: Floats
    lag: Floats
    left: Floats
    same: NDArray[np.bool_]

    @cached_property
    def apart(self) -> Floats:
        """The squared distances by column, (first, second, columns); only slopes need so much memory."""
        return np.asarray((self.first[:, None] - self.second[None]) ** 2)

    def distances(self, closeness: Floats) -> Floats:
        """Return the sums of the squared distances, each column times its `closeness`, (first, second)."""
        scale = np.sqrt(closeness)
        return np.asarray(cdist(self.first * scale, self.second * scale, "sqeuclidean"))

    @classmethod
    def of(cls, first: Scores, second: Scores) -> "_Pairs":
        return cls(
            first.columns,
            second.columns,
            np.abs(first.share[:, None] - second.share[None]),
            first.share[:, None] + second.share[None] - 2,
            first.trial[:, None] == second.trial[None],
        )


class _Kernel:
    """The covariances of pairs of scores, and how they change with the settings."""

    def __init__(self, settings: Settings, pairs: _Pairs) -> None:
        self._settings = settings
        self._pairs = pairs
        self._closeness = np.exp(-2 * settings.lengths)
        root = np.sqrt(5 * pairs.distances(self._closeness))
        falling = np.exp(-root)
        self._near = (1 + root + root**2 / 3) * falling
        self._slope = 5 / 3 * (1 + root) * falling
        self._lag = pairs.lag * np.exp(-settings.memory)
        self._memory = np.exp(-self._lag)
        self._size = np.exp(settings.growth * pairs.left)
        self._own = np.where(pairs.same, np.exp(settings.own), 0.0)
        self._mean = np.exp(settings.mean_curve) * self._memory

    @cached_property
    def effects(self) -> Floats:
        """The covariance of the effects of configurations and trials."""
        lasting, changing = np.exp([self._settings.lasting, self._settings.changing])
        of_columns = self._near * (lasting + changing * self._memory)
        return np.asarray(self._size * (of_columns + self._own * (1 + self._memory) / 2))

    @property
    def whole(self) -> Floats:
        """The covariance without noise."""
        return np.asarray(self.effects + self._mean)

    @property
    def noise(self) -> Floats:
        """The variance of the noise of each score, of one set with itself."""
        return np.asarray(np.exp(self._settings.noise) * np.diagonal(self._size))

    def pulls(self, weights: Floats) -> Floats:
        """Return the sum of weights x the derivative of the covariance with noise, by setting."""
        lasting, changing = np.exp([self._settings.lasting, self._settings.changing])
        sized = weights * self._size
        near = sized * self._near
        remembered = near * self._memory
        slopes = sized * self._slope * (lasting + changing * self._memory)
        by_lengths = np.tensordot(slopes, self._pairs.apart) * self._closeness
        noise = np.diagonal(weights) * self.noise
        fading = changing * remembered + sized * self._own * self._memory / 2 + weights * self._mean
        rest = [
            lasting * near.sum(),
            changing * remembered.sum(),
            (weights * self._mean).sum(),
            (sized * self._own * (1 + self._memory)).sum() / 2,
            noise.sum(),
            (fading * self._lag).sum(),
            (weights * self.effects * self._pairs.left).sum() + (noise * np.diagonal(self._pairs.left)).sum(),
        ]
        return np.concatenate([by_lengths, rest])


def fit_settings(scores: Scores) -> Settings:
    """Return the most probable settings, given scores and the prior (`Settings.spread`)."""
    usual = Settings.usual(scores.columns.shape[1])
    seen = scores.at(_telling_most(scores))
    found = minimize(
        partial(improbability, scores=seen, pairs=_Pairs.of(seen, seen)),
        usual.vector,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(usual.vector - 4 * usual.spread, usual.vector + 4 * usual.spread, strict=True)),
        options={"maxiter": ITERATIONS},
    )
    return Settings.of_vector(np.asarray(found.x))


def _telling_most(scores: Scores) -> Ints:
    """Return the rows of the scores to which settings are fitted.

    Whole curves come first, all their scores together: they alone tell how far the start of a curve shows its
    end. Most trials are stopped early, and would crowd them out.
    """
    ended = np.isin(scores.trial, scores.trial[scores.share == 1])
    mixed = np.random.default_rng(0).permutation(int(scores.trial.max()) + 1)[scores.trial]
    order = np.lexsort((mixed, ~ended))
    return np.sort(order[:MOST_FOR_SETTINGS])


def improbability(vector: Floats, scores: Scores, pairs: _Pairs | None = None) -> tuple[float, Floats]:
    """Return the negative logarithm of the probability of settings, up to a constant, and its slopes.

    Args:
        vector: of the settings.
        scores: that are known.
        pairs: of these scores with themselves, if they are at hand.
    """
    usual = Settings.usual(scores.columns.shape[1])
    kernel = _Kernel(Settings.of_vector(vector), pairs or _Pairs.of(scores, scores))
    covariance = kernel.whole + np.diag(kernel.noise + ROUNDING)
    factor = cho_factor(covariance, lower=True, check_finite=False)
    weights = cho_solve(factor, scores.score, check_finite=False)
    inverse = cho_solve(factor, np.eye(len(scores)), check_finite=False)
    away = (vector - usual.vector) / usual.spread
    value = scores.score @ weights / 2 + np.log(np.diagonal(factor[0])).sum() + away @ away / 2
    return float(value), kernel.pulls(inverse - np.outer(weights, weights)) / 2 + away / usual.spread


@dataclass(frozen=True)
class CurveModel:
    """The process, given the scores of trials.

    Attributes:
        settings: of the process.
        scores: what is known.
    """

    settings: Settings
    scores: Scores

    @cached_property
    def _factor(self) -> tuple[Floats, bool]:
        kernel = _Kernel(self.settings, _Pairs.of(self.scores, self.scores))
        covariance = kernel.whole + np.diag(kernel.noise + ROUNDING)
        found: tuple[Floats, bool] = cho_factor(covariance, lower=True, check_finite=False)
        return found

    @cached_property
    def _weights(self) -> Floats:
        return np.asarray(cho_solve(self._factor, self.scores.score, check_finite=False))

    def finals(self, columns: Floats) -> tuple[Floats, Floats]:
        """Return what configurations score at the end on other seeds: mean and standard deviation.

        Args:
            columns: the configurations, (n, columns).
        """
        n = len(columns)
        asked = Scores(columns, np.ones(n), np.full(n, -1), np.zeros(n))
        known = _Kernel(self.settings, _Pairs.of(asked, self.scores)).whole
        held = solve_triangular(self._factor[0], known.T, lower=True, check_finite=False)
        one = self.settings
        before = np.exp([one.lasting, one.changing, one.mean_curve]).sum()
        variance = np.maximum(before - (held**2).sum(axis=0), ROUNDING)
        return known @ self._weights, np.sqrt(variance)

    def believing(self, columns: Floats, trial: Ints) -> "CurveModel":
        """Return the process as if these trials had ended, each with the score that is expected of it."""
        mean, _ = self.finals(columns)
        return CurveModel(self.settings, self.scores.and_finals(columns, trial, mean))
