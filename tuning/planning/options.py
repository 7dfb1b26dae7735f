"""The options of a sweep in Python: their types, and the error for an unknown argument."""

import reprlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from inspect import signature
from numbers import Integral, Real
from pathlib import Path
from types import NoneType
from typing import Any, Final, ParamSpec, TypedDict, TypeVar, get_args, get_origin, get_type_hints

from contrasweep.names import did_you_mean, same_name
from contrasweep.search_spaces import Space
from contrasweep.tuning.catalogue.declared import DECLARED_METHODS
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Value
from contrasweep.tuning.planning.resources import Machine
from contrasweep.tuning.planning.spaces import known_settings

P = ParamSpec("P")
R = TypeVar("R")


class SweepOptions(TypedDict, total=False):
    """The options of `plan_sweep`, which describes them."""

    trials: int | None
    epochs: int | None
    values: Mapping[str, Value] | None
    space: Space | Mapping[str, Any] | str | Path | None
    use_preset: bool
    sampler: str | None
    grid_points: int | None
    scheduler: str | None
    metric: str | None
    asha_metric: str | None
    eta: int | None
    grace: int | None
    seed: int
    seeds: int | None
    keep: Sequence[str]
    warm_start: Sequence[str]
    enqueue: Sequence[Mapping[str, Any]]
    storage: str | None
    concurrency: int | None
    cpus_per_trial: int
    workers: int
    gpus_per_worker: float | None
    device: str
    machine: Machine | None
    max_failures: int
    trial_timeout: float | None
    budget: float | None
    stop_when: str | None
    keep_weights: int
    data_root: str | Path | None
    results: str | Path | None
    name: str | None
    command: str


_IN_WORDS: Final[Mapping[Any, str]] = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "True or False",
    Mapping: "a mapping",
    Sequence: "a list",
    Path: "a path",
}


def checks_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function that takes the options of a sweep refuse others in words, before it is called.

    Raises:
        TypeError: it has no such argument; the message has the nearest, or says how to give a setting.
        InputError: an option is of another kind.
    """
    names = signature(function).parameters

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        for name, value in given.items():
            if name not in names:
                hint = _meant(name, value, given.get("method"), list(names))
                raise TypeError(f"{function.__name__}() has no argument {name!r}.{hint}")
            if value is not None or names[name].default is not None:
                _check_kind(name, value)
        return function(*args, **kwargs)

    return call


def _meant(name: str, value: Any, method: Any, known: Sequence[str]) -> str:
    """Return a hint at what is meant by an argument that there is not; it begins with a space."""
    if isinstance(method, str) and method in DECLARED_METHODS:
        setting = same_name(name, known_settings(method), "setting")
        if setting is not None and same_name(name, known, "argument") is None:
            return f" It is a setting: give values={{{setting!r}: {reprlib.repr(value)}}}."
    near = did_you_mean(name, known, "argument")
    return near or f" Known: {', '.join(known)}."


def _check_kind(name: str, value: Any) -> None:
    kinds = _kinds().get(name, ())
    if kinds and not any(_is(value, kind) for kind in kinds):
        *others, last = (_IN_WORDS.get(kind, f"a {kind.__name__}") for kind in kinds if kind is not NoneType)
        allowed = f"{', '.join(others)} or {last}" if others else last
        raise InputError(f"{name} must be {allowed}, given {reprlib.repr(value)}")


@cache
def _kinds() -> Mapping[str, tuple[Any, ...]]:
    """Return the kinds that each option may have."""
    hints = {"method": str, "dataset": str, **get_type_hints(SweepOptions)}
    return {name: tuple(get_origin(one) or one for one in _members(hint)) for name, hint in hints.items()}


def _members(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union; another hint is its own only one."""
    return (hint,) if get_origin(hint) in (None, Mapping, Sequence) else get_args(hint)


def _is(value: Any, kind: Any) -> bool:
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    # A text is a sequence of texts to Python, and never meant as one.
    return isinstance(value, kind) and not (kind is Sequence and isinstance(value, str))
