"""Where the variance of a found score comes from: the search, the seed, or what is left.

A search of n trials finds the configuration that it happens to choose. Its score on a seed is split as in a
two-way analysis of variance (configurations by seeds, one run each), where a configuration counts with its
chance of being chosen: `search` is the variance between configurations, `seed` what a seed adds to all of
them, `rest` what remains, the noise of a single run. Components are estimated by the method of moments, and
one below zero counts as zero.
"""

import numpy as np

from contrasweep.tuning.statistics import Floats

PARTS = ("search", "seed", "rest")

SINGLE = 1 - 1e-9
"""Above this sum of squared chances, one configuration is always chosen: nothing varies with the search."""


def variance_parts(weights: Floats, scores: Floats) -> Floats:
    """Return the variance from the search, from the seed and from the rest, (..., 3); NaN if unknown.

    Args:
        weights: the chance that each configuration is chosen, (..., n). Only configurations with a score on
            all seeds count; where these are chosen too rarely to say anything, the result is NaN.
        scores: by seed, (seeds, n), two seeds or more.
    """
    known = np.isfinite(scores).all(axis=0)
    weights, scores = weights[..., known], scores[:, known]
    total = weights.sum(axis=-1, keepdims=True)
    w = np.divide(weights, total, out=np.full_like(weights, np.nan), where=total > 0)
    seeds = len(scores)
    by_configuration = scores.mean(axis=0)
    by_seed = w @ scores.T
    mean = by_seed.mean(axis=-1, keepdims=True)
    single = (w**2).sum(axis=-1)
    # The weighted squares of scores - by_configuration - by_seed + mean, without an array of them.
    squares = w @ ((scores - by_configuration) ** 2).sum(axis=0) - ((by_seed - mean) ** 2).sum(axis=-1)
    apart = np.where(single < SINGLE, 1 - single, np.nan)
    rest = squares / ((seeds - 1) * apart)
    search = (w * (by_configuration - mean) ** 2).sum(axis=-1) - rest * apart / seeds
    seed = by_seed.var(axis=-1, ddof=1) - rest * single
    return np.stack([np.maximum(part, 0) for part in (search, seed, rest)], axis=-1)
