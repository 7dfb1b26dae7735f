"""Searches of learning curves with a known truth, stopped by ASHA's rule: what epochs owe to parameters."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from contrasweep.tuning.search import SearchStudy
from contrasweep.tuning.search.axes import axes_of, draw_codes, strata_of
from contrasweep.tuning.sensitivity.observations import Observations
from tests.sensitivity.synthetic import Floats, observed, space_of, stopped

SPACE = space_of(
    a="unit",
    b="unit",
    c="unit",
    d="unit",
    kernel={"choice": ["rbf", "laplacian", "cosine"], "default": "rbf"},
)
EPOCHS = 10
RUNGS = (1, 3, 9)
SEED_NOISE, EPOCH_NOISE = 0.15, 0.1

Kind = Literal["steady", "crossing", "fading", "noise"]


def _signal(kind: Kind, codes: Floats) -> Floats:
    """Return the mean score of configurations by epoch, (trials, epochs + 1); c, d and kernel do nothing."""
    a, b = codes[:, 0, None], codes[:, 1, None]
    # From 1 after the first epoch to exactly 0 after the seventh.
    early = np.clip(1 - (np.arange(EPOCHS + 1) - 1) / 6, 0, 1)
    signals: dict[Kind, Callable[[], Floats]] = {
        "steady": lambda: (2 * a + 0.7 * b + 1.5 * (a - 0.5) * (b - 0.5)) * np.ones_like(early),
        "crossing": lambda: 2 * a * early + 2 * b * (1 - early),
        "fading": lambda: 1.5 * a + 1.5 * b * early,
        "noise": lambda: 0 * a * early,
    }
    return signals[kind]()


def _luck(trials: int, rng: np.random.Generator) -> Floats:
    """Return what training adds: growth, luck that stays with a trial, and luck of each epoch."""
    growth = 0.3 * np.log1p(np.arange(EPOCHS + 1))
    stays = SEED_NOISE * rng.normal(size=(trials, 1))
    return np.asarray(growth + stays + EPOCH_NOISE * rng.normal(size=(trials, EPOCHS + 1)))


def curves(kind: Kind, codes: Floats, rng: np.random.Generator) -> Floats:
    """Return the scores of configurations by epoch if none is stopped, (trials, epochs + 1)."""
    return _signal(kind, codes) + _luck(len(codes), rng)


def searched(
    kind: Kind, trials: int, seed: int, sampler: str = "random", *, stops: bool = True
) -> Observations:
    """Return a search that ASHA stopped; without `stops`, as it would have gone on."""
    axes, strata = axes_of(SPACE), strata_of(SPACE)
    rng = np.random.default_rng(seed)
    luck = _luck(trials, rng)
    drawn = sampler == "random"
    codes = draw_codes(axes, strata, trials, rng) if drawn else _proposed(kind, luck, sampler, seed)
    return _study(codes, _signal(kind, codes) + luck, stops=stops)


def _study(codes: Floats, curve: Floats, *, stops: bool = True) -> Observations:
    whole = observed(SPACE, lambda x: x["a"], len(codes), epochs=EPOCHS)
    found = replace(whole, codes=codes, curve=curve, score=curve[:, -1])
    return stopped(found, RUNGS) if stops else found


def _proposed(kind: Kind, luck: Floats, sampler: str, seed: int) -> Floats:
    """Return the proposals of a sampler that learns from trials as ASHA leaves them."""
    search = SearchStudy(SPACE, sampler=sampler, seed=seed, trials=len(luck), epochs=EPOCHS)
    axes = axes_of(SPACE)
    codes = np.zeros((0, len(axes)))
    for number in range(len(luck)):
        values = search.ask().values
        drawn = [
            axis.choices.index(values[axis.name]) if axis.is_category else values[axis.name] for axis in axes
        ]
        codes = np.concatenate([codes, [drawn]])
        seen = _study(codes, _signal(kind, codes) + luck[: number + 1])
        for rung in RUNGS:
            if np.isfinite(seen.curve[-1, rung]):
                search.report(number, rung, float(seen.curve[-1, rung]))
        if np.isfinite(seen.score[-1]):
            search.complete(number, float(seen.score[-1]))
        else:
            search.prune(number)
    return codes
