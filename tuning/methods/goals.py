"""What a search aims at: the metrics it maximises, and the one by which weak trials are stopped."""

from contrasweep.tuning.errors import InputError, unknown_name
from contrasweep.tuning.methods import Method
from contrasweep.tuning.methods.metrics import default_goal, goals
from contrasweep.tuning.objectives.datasets import Facts

PREFIX = "val."


def chosen_goals(given: str | None, method: Method, spec: Facts) -> tuple[str, ...]:
    """Return the metrics named in `given` (commas between them, `val.` may be left out), or the default one.

    Every goal is maximised: a larger colour error means that less of the colour is kept.

    Raises:
        InputError: a metric that this method is not scored on (with the nearest), or one named twice.
    """
    if given is None:
        return (default_goal(method, spec),)
    chosen = tuple(full_name(name.strip(), method, spec) for name in given.split(","))
    if len(set(chosen)) < len(chosen):
        raise InputError(f"metric: given {given}; allowed: each once")
    return chosen


def full_name(given: str, method: Method, spec: Facts) -> str:
    """Return the name of a goal as the store spells it.

    Raises:
        InputError: this method is not scored on it here (with the nearest name).
    """
    known = goals(method, spec)
    for name in (given, PREFIX + given):
        if name in known:
            return name
    error = unknown_name("metric", given, known)
    raise InputError(f"{error} So {method.name} is scored on {spec.name}.")
