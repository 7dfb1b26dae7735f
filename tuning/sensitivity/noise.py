"""Seed noise against the effect of hyperparameters: variance components of trials with several seeds.

All trials of a search run on the same seeds, and a seed decides about initialisation, order, views, and (of
transductive data) the held-out fold. What a seed adds to all configurations alike cancels when trials are
compared on one seed. So it is no part of the noise of a run, but a component of its own: a two-way analysis
of variance without replication (configurations by seeds; Shrout and Fleiss 1979, case 3).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2, f

from contrasweep.tuning.sensitivity import enough
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.observations import Observations, SeedScores
from contrasweep.tuning.statistics import ROUNDING, TAILS, Floats, t_quantile


@dataclass(frozen=True)
class SeedNoise:
    """Random effects model: score = mean + configuration + seed + noise of the run.

    If the trials share no two seeds, what a seed adds to all configurations is unknown, and counts as noise.

    Attributes:
        noise_std: standard deviation of the noise of a run.
        noise_low, noise_high: its 95 % interval (chi-squared).
        seed_std: standard deviation of what a seed adds to all configurations; None if unknown.
        trial_std: standard deviation between configurations, without the runs' noise.
        share: the share of the variance of single runs on one seed that configurations explain (intraclass
            correlation).
        share_low, share_high: its 95 % interval (from the F distribution; approximate if the number of seeds
            differs between trials).
        detectable: two single runs on one seed that differ by less may differ by noise alone (95 %, Student's
            t with the degrees of freedom of the noise).
        trials, runs: the number of trials with two seeds or more, and of their runs that were used.
        seeds: the number of seeds that all these trials share; with two or more, only these were used.
    """

    noise_std: float
    noise_low: float
    noise_high: float
    seed_std: float | None
    trial_std: float
    share: float
    share_low: float
    share_high: float
    detectable: float
    trials: int
    runs: int
    seeds: int


@dataclass(frozen=True)
class _Squares:
    """An analysis of variance.

    Attributes:
        between, within: mean squares between configurations, and of the noise.
        freedom: degrees of freedom of the noise.
        size: the runs of a configuration; an average where it differs.
        seed: the variance of what a seed adds to all configurations; None if unknown.
        runs: the number of runs.
    """

    between: float
    within: float
    freedom: int
    size: float
    seed: float | None
    runs: int


def seed_noise(observations: Observations) -> SeedNoise | TooFew:
    """Return the variance components of a study whose trials have several seeds."""
    by_trial = _by_trial(observations.distinct().replicates)
    trials = len(by_trial)
    if trials < 2:
        return TooFew(trials, 2, "trials with two seeds or more")
    shared = sorted(set.intersection(*map(set, by_trial)))
    crossed = len(shared) > 1
    repeated = (trials - 1) * (len(shared) - 1) if crossed else sum(map(len, by_trial)) - trials
    if repeated < enough.REPLICATED:
        beyond = " of the trials beyond the first" if crossed else " of a trial"
        return TooFew(repeated, enough.REPLICATED, f"repeated runs (seeds beyond the first{beyond})")
    squares = (
        _crossed(np.array([[own[seed] for seed in shared] for own in by_trial]))
        if crossed
        else _nested([[*own.values()] for own in by_trial])
    )
    low, high = (
        math.sqrt(squares.freedom * squares.within / chi2.ppf(q, squares.freedom)) for q in TAILS[::-1]
    )
    share, share_low, share_high = _share(squares, trials - 1)
    return SeedNoise(
        noise_std=math.sqrt(squares.within),
        noise_low=low,
        noise_high=high,
        seed_std=None if squares.seed is None else math.sqrt(squares.seed),
        trial_std=math.sqrt(max(0.0, (squares.between - squares.within) / squares.size)),
        share=share,
        share_low=share_low,
        share_high=share_high,
        detectable=t_quantile(squares.freedom) * math.sqrt(2 * squares.within),
        trials=trials,
        runs=squares.runs,
        seeds=len(shared),
    )


def _by_trial(runs: SeedScores) -> list[Mapping[int, float]]:
    """Return seed to score for each trial with two seeds or more."""
    found: dict[int, dict[int, float]] = {}
    for trial, seed, score in zip(runs.trial.tolist(), runs.seed.tolist(), runs.score.tolist(), strict=True):
        found.setdefault(trial, {})[seed] = score
    return [own for own in found.values() if len(own) > 1]


def _crossed(scores: Floats) -> _Squares:
    """Analyse configurations by seeds, (trials, seeds), two or more of each."""
    trials, seeds = scores.shape
    by_trial, by_seed = scores.mean(axis=1), scores.mean(axis=0)
    rest = scores - by_trial[:, None] - by_seed + scores.mean()
    freedom = (trials - 1) * (seeds - 1)
    within = _unless_rounding(float((rest**2).sum()), scores) / freedom
    return _Squares(
        between=seeds * float(by_trial.var(ddof=1)),
        within=within,
        freedom=freedom,
        size=seeds,
        seed=max(0.0, float(by_seed.var(ddof=1)) - within / trials),
        runs=scores.size,
    )


def _nested(scores: Sequence[Sequence[float]]) -> _Squares:
    """Analyse the runs of each configuration, two or more of each, on seeds of its own."""
    sizes = np.array([len(own) for own in scores], dtype=np.float64)
    runs = np.concatenate([np.asarray(own, dtype=np.float64) for own in scores])
    means = np.array([np.mean(own) for own in scores])
    freedom = len(runs) - len(sizes)
    rest = runs - np.repeat(means, sizes.astype(int))
    return _Squares(
        between=float((sizes * (means - runs.mean()) ** 2).sum()) / (len(sizes) - 1),
        within=_unless_rounding(float((rest**2).sum()), runs) / freedom,
        freedom=freedom,
        size=float(sizes.sum() - (sizes**2).sum() / sizes.sum()) / (len(sizes) - 1),
        seed=None,
        runs=len(runs),
    )


def _unless_rounding(squares: float, scores: Floats) -> float:
    """Return a sum of squares, 0 where it is rounding."""
    return squares if squares > scores.size * (ROUNDING * float(np.abs(scores).max())) ** 2 else 0.0


def _share(squares: _Squares, freedom: int) -> tuple[float, float, float]:
    """Return the intraclass correlation and its interval, clipped to 0..1."""
    if squares.within == 0:
        return (1.0, 1.0, 1.0) if squares.between > 0 else (0.0, 0.0, 1.0)
    ratio = squares.between / squares.within
    ends = [ratio / f.ppf(tail, freedom, squares.freedom) for tail in TAILS[::-1]]
    share, low, high = (min(1.0, max(0.0, (r - 1) / (r + squares.size - 1))) for r in (ratio, *ends))
    return share, low, high
