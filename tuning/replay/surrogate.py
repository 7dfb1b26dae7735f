"""A surrogate of recorded learning curves: it predicts the scores of any configuration after each epoch.

Curves of one workload are much alike, so a few principal components hold them. A Gaussian process predicts
each component from the configuration. What the components leave out counts as noise.
"""

import warnings
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from threadpoolctl import threadpool_limits

from contrasweep.tuning.statistics import Floats

COMPONENTS: Final = 2
FOLDS: Final = 5
LENGTHS: Final = (0.05, 1e3)
"""The shortest and longest scale, in lengths of a range, on which a parameter may change the scores."""
MOST_FOR_KERNEL: Final = 250
"""The kernel is fitted to so many runs at most: its cost grows with their third power. All runs are then
predicted from."""


@dataclass(frozen=True)
class Surrogate:
    """Predicts the scores of a run from its configuration.

    Attributes:
        mean: of the recorded scores, (scores,).
        basis: the principal components, scaled to unit deviation, (components, scores).
        processes: one for each component.
    """

    mean: Floats
    basis: Floats
    processes: tuple[Any, ...]

    def predict(self, columns: Floats) -> Floats:
        """Return the expected scores of configurations, (n, scores).

        Args:
            columns: the configurations as `axes.design` gives them, (n, columns).
        """
        parts = np.stack([process.predict(columns) for process in self.processes], axis=1)
        return np.asarray(self.mean + parts @ self.basis)


def fit_surrogate(columns: Floats, scores: Floats) -> Surrogate:
    """Fit recorded runs.

    Args:
        columns: their configurations, (runs, columns).
        scores: after each epoch, and the final one, (runs, scores).
    """
    mean = scores.mean(axis=0)
    parts, sizes, basis = np.linalg.svd(scores - mean, full_matrices=False)
    kept = [k for k in range(min(COMPONENTS, len(sizes))) if sizes[k] > 1e-9 * max(1.0, sizes[0])]
    scale = np.sqrt(len(scores))
    processes = tuple(_fit_process(columns, parts[:, k] * scale) for k in kept)
    return Surrogate(mean, basis[kept] * (sizes[kept] / scale)[:, None], processes)


def held_out(columns: Floats, scores: Floats) -> Floats:
    """Return the scores of each run as predicted from other runs, (runs, scores)."""
    fold = np.random.default_rng(0).permutation(len(scores)) % FOLDS
    predicted = np.empty_like(scores)
    for one in range(min(FOLDS, len(scores))):
        there = fold == one
        predicted[there] = fit_surrogate(columns[~there], scores[~there]).predict(columns[there])
    return predicted


def _fit_process(columns: Floats, values: Floats) -> Any:
    lengths = np.ones(columns.shape[1])
    kernel = ConstantKernel(1.0) * Matern(lengths, LENGTHS, nu=2.5) + WhiteKernel(0.1)
    few = np.random.default_rng(0).permutation(len(columns))[:MOST_FOR_KERNEL]
    with warnings.catch_warnings(), threadpool_limits(1):
        # A parameter without effect has a length at the upper bound, which is what the bound is for.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = GaussianProcessRegressor(kernel, normalize_y=True).fit(columns[few], values[few])
        whole = GaussianProcessRegressor(fitted.kernel_, optimizer=None, normalize_y=True)
        return whole.fit(columns, values)
