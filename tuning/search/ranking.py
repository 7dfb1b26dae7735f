"""Where a number lies in its range, and where a trial stands among the others."""

from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from contrasweep.search_spaces import Scale

Numeric = FloatDistribution | IntDistribution


def position(dist: Numeric, value: float) -> float:
    """Return the position 0..1 of `value`."""
    return _scale(dist).unit(value)


def value_at(dist: Numeric, position: float) -> int | float:
    """Return the value at a position; beyond the range its nearest end."""
    return _scale(dist).value(position)


def _scale(dist: Numeric) -> Scale:
    return Scale(dist.low, dist.high, dist.log, isinstance(dist, IntDistribution))


def standing(trial: FrozenTrial, objective: int | None = None) -> tuple[int, int, float]:
    """Return a key that sorts trials, best first; larger values are better.

    Values of different fidelity are never compared: finished trials stand before stopped ones, of which those
    that came further stand before the others; failed ones come last.

    Args:
        trial: an ended one.
        objective: by which of several; a stopped trial has values of none of them.
    """
    if trial.state is TrialState.COMPLETE:
        return 0, 0, -trial.values[objective or 0]
    last = trial.last_step
    if trial.state is TrialState.PRUNED and last is not None:
        return 1, -last, -trial.intermediate_values[last] if objective is None else 0.0
    return 2, 0, 0.0
