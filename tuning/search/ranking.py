"""Where a number lies in its range, and where a trial stands among the others."""

import math

from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

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


def standing(trial: FrozenTrial, maximise: bool, objective: int | None = None) -> tuple[int, int, float]:
    """Return a key that sorts trials, best first.

    Values of different fidelity are never compared: finished trials stand before stopped ones, of which those
    that came further stand before the others; failed ones come last.

    Args:
        trial: an ended one.
        maximise: whether larger values are better.
        objective: by which of several; a stopped trial has values of none of them.
    """
    sign = -1.0 if maximise else 1.0
    if trial.state is TrialState.COMPLETE:
        return 0, 0, sign * trial.values[objective or 0]
    last = trial.last_step
    if trial.state is TrialState.PRUNED and last is not None:
        return 1, -last, sign * trial.intermediate_values[last] if objective is None else 0.0
    return 2, 0, 0.0
