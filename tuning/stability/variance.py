"""Where the variance of a found score comes from: the search, the seed, or what is left.

A search of n trials finds the configuration that it happens to choose. Its score on a seed is split as in a
two-way analysis of variance (configurations by seeds, one run each), where a configuration counts with its
chance of being chosen: `search` is the variance between configurations, `seed` what a seed adds to all of
them, `rest` what remains, the noise of a single run. Components are estimated by the method of moments, and
one below zero counts as zero.

The seed on which a search selects is no seed like the others: what was chosen there was also lucky there.
Its luck is no effect of a seed on all configurations, so `found_parts` keeps it out, and `selection_luck`
says how large it is.
"""

import numpy as np
from numpy.typing import NDArray

from contrasweep.tuning.statistics import Floats

PARTS = ("search", "seed", "rest")

SINGLE = 1 - 1e-9
"""Above this sum of squared chances, one configuration is always chosen: nothing varies with the search."""


def found_parts(weights: Floats, alike: Floats, selecting: Floats, again: Floats) -> Floats:
    """Return the variance of a found score on a fresh seed, by search, seed and rest, (..., 3).

    `seed` is estimated from all configurations alike, so that the selection has no part in it. `search` and
    `rest` are those of the chosen ones on the other seeds. From a single other seed, `rest` needs the
    selecting one too, and is a little too small: the chosen configurations differ less in their luck there.

    Args:
        weights: the chance that each configuration is chosen, (..., n).
        alike: the same where all are as likely, (..., n): how often each is in the pool.
        selecting: the scores on the seed that the chances come from, (n,).
        again: the scores on the other seeds, (seeds, n), one seed or more. Only configurations with a score
            on all seeds count; where these are chosen too rarely to say anything, the result is NaN.
    """
    scores = np.vstack([selecting, again])
    known = np.asarray(np.isfinite(scores).all(axis=0))
    w, scores = _shares(weights, known), scores[:, known]
    others = scores[1:]
    rest = variance_parts(w, others if len(others) > 1 else scores)[..., 2]
    mean = others.mean(axis=0) - others.mean()
    between = w @ mean**2 - (w @ mean) ** 2
    search = between - rest * (1 - (w**2).sum(axis=-1)) / len(others)
    seed = np.broadcast_to(variance_parts(_shares(alike, known), scores)[..., 1], search.shape)
    return np.stack([np.maximum(search, 0), seed, rest], axis=-1)


def selection_luck(weights: Floats, alike: Floats, selecting: Floats, again: Floats) -> Floats:
    """Return by how much the chosen configurations score higher on the selecting seed than on others, (...).

    What that seed adds to all configurations is subtracted. Arguments are those of `found_parts`.
    """
    gain = selecting - again.mean(axis=0)
    known = np.asarray(np.isfinite(gain))
    return np.asarray((_shares(weights, known) - _shares(alike, known)) @ gain[known])


def variance_parts(weights: Floats, scores: Floats) -> Floats:
    """Return the variance from the search, from the seed and from the rest, (..., 3); NaN if unknown.

    Args:
        weights: the chance that each configuration is chosen, (..., n), from other seeds than those of the
            scores. Only configurations with a score on all seeds count; where these are chosen too rarely
            to say anything, the result is NaN.
        scores: by seed, (seeds, n), two seeds or more.
    """
    known = np.asarray(np.isfinite(scores).all(axis=0))
    w, scores = _shares(weights, known), scores[:, known]
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


def _shares(weights: Floats, known: NDArray[np.bool_]) -> Floats:
    """Return the weights of the known configurations, with sum 1; NaN where there are none."""
    weights = weights[..., known]
    total = weights.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(weights, total, out=np.full_like(weights, np.nan), where=total > 0))
