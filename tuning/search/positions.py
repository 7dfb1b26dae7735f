"""Where a number lies in its range, on the scale of the range: 0 at its low end, 1 at its high one."""

import math

from optuna.distributions import FloatDistribution, IntDistribution

Numeric = FloatDistribution | IntDistribution


def position(dist: Numeric, value: float) -> float:
    """Return the position 0..1 of `value`."""
    low, high = _scale(dist)
    return ((math.log(value) if dist.log else value) - low) / (high - low)


def value_at(dist: Numeric, position: float) -> int | float:
    """Return the value at a position; beyond the range its nearest end."""
    low, high = _scale(dist)
    value = low + position * (high - low)
    value = math.exp(value) if dist.log else value
    if isinstance(dist, IntDistribution):
        value = round(value)
    return type(dist.low)(min(max(value, dist.low), dist.high))


def _scale(dist: Numeric) -> tuple[float, float]:
    # Every whole number gets an equal share of the range, the ends too.
    half = 0.5 if isinstance(dist, IntDistribution) else 0.0
    low, high = dist.low - half, dist.high + half
    return (math.log(low), math.log(high)) if dist.log else (low, high)
