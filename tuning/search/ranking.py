"""The position of a number in its range, and the rank of a trial among others."""

from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from contrasweep.search_spaces import Scale

Numeric = FloatDistribution | IntDistribution


def position(dist: Numeric, value: float) -> float:
    """Return the position 0..1 of `value`."""
    return _scale(dist).unit(value)


def value_at(dist: Numeric, position: float) -> int | float:
    """Return the value at a position; beyond the range, the nearest end."""
    return _scale(dist).value(position)


def _scale(dist: Numeric) -> Scale:
    return Scale(dist.low, dist.high, dist.log, isinstance(dist, IntDistribution))


def standing(trial: FrozenTrial, objective: int | None = None) -> tuple[int, int, float]:
    """Return a key that sorts trials, best first; larger values are better.

    Values of different fidelity are never compared. Finished trials come first, then stopped ones (a later
    stop is better), then failed ones.

    Args:
        trial: a trial that has ended.
        objective: the number of the objective to rank by, if there are several; stopped trials then have no
            values.
    """
    if trial.state is TrialState.COMPLETE:
        return 0, 0, -trial.values[objective or 0]
    last = trial.last_step
    if trial.state is TrialState.PRUNED and last is not None:
        return 1, -last, -trial.intermediate_values[last] if objective is None else 0.0
    return 2, 0, 0.0
