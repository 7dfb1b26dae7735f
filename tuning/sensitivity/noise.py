"""Seed noise against the effect of hyperparameters: variance components of trials with several seeds."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2, f

from contrasweep.tuning.sensitivity import enough
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.observations import Observations
from contrasweep.tuning.statistics import TAILS, t_quantile


@dataclass(frozen=True)
class SeedNoise:
    """One-way random effects model: score = mean + configuration + seed.

    Attributes:
        seed_std: standard deviation between the seeds of a configuration.
        seed_low, seed_high: its 95 % interval (chi-squared).
        trial_std: standard deviation between configurations, without the seeds' part.
        share: the share of the variance of single runs that configurations explain (intraclass correlation).
        share_low, share_high: its 95 % interval (from the F distribution; approximate if the number of seeds
            differs between trials).
        detectable: two single runs that differ by less may differ by their seeds alone (95 %, Student's t
            with the degrees of freedom between seeds).
        trials, runs: the number of trials with two seeds or more, and of their runs.
    """

    seed_std: float
    seed_low: float
    seed_high: float
    trial_std: float
    share: float
    share_low: float
    share_high: float
    detectable: float
    trials: int
    runs: int


def seed_noise(observations: Observations) -> SeedNoise | TooFew:
    """Return the variance components of a study whose trials have several seeds."""
    runs = observations.replicates
    _, row, count = np.unique(runs.trial, return_inverse=True, return_counts=True)
    kept = count[row] > 1
    score, row = runs.score[kept], np.unique(row[kept], return_inverse=True)[1]
    sizes = np.bincount(row).astype(float)
    between, within = len(sizes) - 1, len(score) - len(sizes)
    if within < enough.REPLICATED or between < 1:
        return TooFew(max(within, 0), enough.REPLICATED, "repeated runs (seeds beyond the first of a trial)")
    means = np.bincount(row, weights=score) / sizes
    mean_within = float(((score - means[row]) ** 2).sum()) / within
    mean_between = float((sizes * (means - score.mean()) ** 2).sum()) / between
    size = (sizes.sum() - (sizes**2).sum() / sizes.sum()) / between
    seed_low, seed_high = (math.sqrt(within * mean_within / chi2.ppf(q, within)) for q in TAILS[::-1])
    share, low, high = _share(mean_between, mean_within, between, within, size)
    return SeedNoise(
        seed_std=math.sqrt(mean_within),
        seed_low=seed_low,
        seed_high=seed_high,
        trial_std=math.sqrt(max(0.0, (mean_between - mean_within) / size)),
        share=share,
        share_low=low,
        share_high=high,
        detectable=t_quantile(within) * math.sqrt(2 * mean_within),
        trials=len(sizes),
        runs=len(score),
    )


def _share(
    mean_between: float, mean_within: float, between: int, within: int, size: float
) -> tuple[float, float, float]:
    """Return the intraclass correlation and its interval, clipped to 0..1."""
    if mean_within == 0:
        return (1.0, 1.0, 1.0) if mean_between > 0 else (0.0, 0.0, 1.0)
    ratio = mean_between / mean_within
    ratios = [ratio, ratio / f.ppf(TAILS[1], between, within), ratio / f.ppf(TAILS[0], between, within)]
    share, low, high = (min(1.0, max(0.0, (r - 1) / (r + size - 1))) for r in ratios)
    return share, low, high
