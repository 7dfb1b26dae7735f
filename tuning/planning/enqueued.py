"""Configurations that run first (`--enqueue`): reading and checking their file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from contrasweep.names import did_you_mean
from contrasweep.search_spaces import Scalar, Space, read_yaml
from contrasweep.tuning.errors import Faults, InputError, told_to_user
from contrasweep.tuning.limits import check_count
from contrasweep.tuning.planning.spaces import in_own_type

Configuration = Mapping[str, Scalar]
VALUES: Final = "values"
"""The key under which a best.yaml holds the searched values."""

_MOST_TOLD: Final = 10
"""The faults of so many configurations are told."""


def read_configurations(path: Path, methods: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the configurations in a YAML file: a list of values by parameter, or a best.yaml.

    Raises:
        InputError: the file cannot be read, holds something else, or is the best.yaml of none of `methods`.
    """
    with told_to_user("--enqueue: "):
        content = read_yaml(path)
    if isinstance(content, Mapping) and isinstance(content.get(VALUES), Mapping):
        experiment = content.get("experiment")
        method = experiment.get("method") if isinstance(experiment, Mapping) else None
        if method is not None and method not in methods:
            raise InputError(
                f"--enqueue: {path} is a configuration of {method}; allowed: one of {', '.join(methods)}"
            )
        content = [content[VALUES]]
    if not isinstance(content, list) or not content or not all(isinstance(one, Mapping) for one in content):
        raise InputError(
            f"--enqueue: {path} holds no list of configurations such as `- {{temperature: 0.1}}`, and is no "
            "best.yaml"
        )
    check_count(f"configurations in {path}", len(content))
    return content


def whole_configurations(given: Sequence[Mapping[str, Any]], space: Space) -> tuple[Configuration, ...]:
    """Return the active values of each configuration in a space; what one leaves out takes its default.

    Raises:
        InputError: a name is none of the space's (with the nearest), a value is not allowed there, or a
            parameter is given that the other values leave out; the message has all such faults, and names the
            configurations.
    """
    faults, whole = Faults(), []
    for number, one in enumerate(given, 1):
        with faults.noted(), told_to_user(f"configuration {number} of --enqueue: "):
            whole.append(_whole(one, space))
        if number - len(whole) == _MOST_TOLD:
            break
    faults.tell()
    return tuple(whole)


def _whole(given: Mapping[str, Any], space: Space) -> Configuration:
    values: dict[str, Scalar] = {parameter.name: parameter.default for parameter in space.parameters}
    faults = Faults()
    for name, value in given.items():
        with faults.noted():
            values[name] = _checked(str(name), value, space)
    faults.tell()
    active = space.complete(values)
    if idle := [name for name in given if name not in active]:
        raise InputError(f"{', '.join(idle)} has no meaning beside its other values")
    searched = {parameter.name for parameter in space.searched}
    return {name: value for name, value in active.items() if name in searched}


def _checked(name: str, value: Any, space: Space) -> Scalar:
    """Return a given value in the type of its parameter."""
    if name not in space:
        known = ", ".join(parameter.name for parameter in space.searched)
        raise InputError(f"{name} is not searched.{did_you_mean(name, space.names)} Searched: {known}")
    parameter = space[name]
    if type(value) is int and parameter.type == "float":
        value = float(value)
    if not isinstance(value, bool | int | float | str) or not parameter.contains(value):
        raise InputError(f"{name}: given {value!r}; allowed: {parameter.describe()}")
    return in_own_type(parameter, value)


def check_enqueued(enqueued: Sequence[Configuration], trials: int, *, exhaustive: bool) -> None:
    """Refuse configurations that the search would not come to.

    Raises:
        InputError: there are as many as trials, of which the first runs the defaults; or a grid, which runs
            every point in an order of its own.
    """
    if not enqueued:
        return
    if exhaustive:
        raise InputError("--enqueue with --sampler grid: a grid runs all of its points anyway; leave it out")
    if len(enqueued) >= trials:
        raise InputError(
            f"--enqueue gives {len(enqueued):,} configurations beside the defaults, "
            f"which is more than --trials {trials:,}"
        )
