"""Estimates of the scores that stopped trials would have had at later rungs, with their uncertainty.

The scheduler stops a trial because of scores that are stored. So among trials with the same early scores and
the same configuration, those that continued do not differ systematically from those that did not (scores are
missing at random, Rubin 1976), so the trials that continued show how the others would have scored. The score
at a rung is regressed on the scores at the rungs before it and on the parameters; what the data leave open is
drawn, not chosen.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from contrasweep.tuning.sensitivity.basis import STRENGTHS
from contrasweep.tuning.statistics import Floats

LOOSE: Final = 100.0
"""Variance, in variances of the noise, that the weights of all but the latest earlier score may have."""


@dataclass(frozen=True)
class _Fit:
    """A regression with one strength of the parameters.

    Attributes:
        mean: of the weights.
        lower: the Cholesky factor of the weights' precision, in variances of the noise.
        residual: the sum of squares that it leaves.
    """

    mean: Floats
    lower: Floats
    residual: float


@dataclass(frozen=True)
class Continuation:
    """A regression of the score at a rung on earlier scores and on the parameters (Bayesian, conjugate).

    The intercept and the latest score have flat priors. The parameters' columns share one normal prior, whose
    strength is among `STRENGTHS`, each as probable as the data make it.

    Attributes:
        centre, scale: mean and deviation of each earlier score among the trials of the fit.
        level, spread: mean and deviation of the score.
        fits, weights: the regression with each strength, and its probability.
        freedom: degrees of freedom of the noise.
    """

    centre: Floats
    scale: Floats
    level: float
    spread: float
    fits: tuple[_Fit, ...]
    weights: Floats
    freedom: int

    def draw(self, earlier: Floats, columns: Floats, rng: np.random.Generator) -> Floats:
        """Return scores drawn for trials without one, (draws, trials).

        Args:
            earlier: scores at the earlier rungs, each perhaps drawn itself, (draws, trials, rungs).
            columns: of the trials' configurations, (trials, columns).
            rng: the source of the draws.
        """
        draws, trials, _ = earlier.shape
        found = np.empty((draws, trials))
        for i in range(draws):
            fit = self.fits[int(rng.choice(len(self.fits), p=self.weights))]
            noise = np.sqrt(fit.residual / rng.chisquare(self.freedom))
            weights = fit.mean + noise * np.linalg.solve(fit.lower.T, rng.normal(size=len(fit.mean)))
            inputs = _inputs((earlier[i] - self.centre) / self.scale, columns)[:, : len(weights)]
            found[i] = inputs @ weights + noise * rng.normal(size=trials)
        return self.level + self.spread * found


def fit_continuation(earlier: Floats, columns: Floats, score: Floats) -> Continuation:
    """Fit the scores of trials that have all of them.

    Args:
        earlier: scores at the earlier rungs, the latest rung last, (trials, rungs).
        columns: of the configurations, (trials, columns).
        score: at the rung, (trials,); three or more.
    """
    centre, scale = earlier.mean(axis=0), _deviation(earlier)
    level, spread = float(score.mean()), float(_deviation(score))
    inputs = _inputs((earlier - centre) / scale, columns)
    known = 1 + earlier.shape[1]
    freedom = max(2, len(score) - known)
    older = np.full(known, 1 / LOOSE)
    older[[0, known - 1]] = 0
    found = [_fit(inputs, (score - level) / spread, older, strength, freedom) for strength in STRENGTHS]
    evidence = np.array([value for _, value in found])
    weights = np.exp(evidence - evidence.max())
    fits = tuple(fit for fit, _ in found)
    return Continuation(centre, scale, level, spread, fits, weights / weights.sum(), freedom)


def _fit(inputs: Floats, score: Floats, older: Floats, strength: float, freedom: int) -> tuple[_Fit, float]:
    """Return the regression with one strength of the parameters, and the logarithm of its evidence."""
    known, count = len(older), inputs.shape[1] - len(older)
    used = inputs if strength else inputs[:, :known]
    own = np.full(used.shape[1] - known, count / strength if strength else 0.0)
    precision = used.T @ used + np.diag(np.concatenate([older, own]))
    # Scores that are all alike leave the precision singular.
    precision += 1e-9 * np.eye(len(precision))
    lower: Floats = np.asarray(np.linalg.cholesky(precision), dtype=np.float64)
    mean: Floats = np.asarray(np.linalg.solve(precision, used.T @ score), dtype=np.float64)
    residual = max(float(score @ score - mean @ (used.T @ score)), 1e-9)
    evidence = 0.5 * np.log(own).sum() - np.log(np.diag(lower)).sum()
    return _Fit(mean, lower, residual), float(evidence - freedom / 2 * np.log(residual))


def _inputs(earlier: Floats, columns: Floats) -> Floats:
    return np.concatenate([np.ones((len(earlier), 1)), earlier, columns], axis=1)


def _deviation(values: Floats) -> Floats:
    found = np.asarray(values.std(axis=0))
    return np.where(found > 0, found, 1.0)
