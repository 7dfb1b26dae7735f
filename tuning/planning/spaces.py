"""Check search spaces against methods: every parameter is known, and none that a method needs is missing."""

import math
from collections.abc import Mapping
from typing import Any

from contrasweep.data import DATASETS
from contrasweep.search_spaces import Parameter, Range, Scalar, Space, learning_rates
from contrasweep.tuning.errors import InputError, told_to_user, unknown_name
from contrasweep.tuning.experiment import Experiment, OptimizerSettings, setting_names
from contrasweep.tuning.methods import METHODS

PROTOCOL = ("epochs", "seed", "validation.", "probes.")
"""Settings by which trials are compared: trials that differ in them cannot be."""


def complete_space(method: str, given: Space, values: Mapping[str, Any] | None = None) -> Space:
    """Return `given` completed by the method's other hyperparameters, each fixed.

    They are fixed at their value in `values`, else at their default.

    Raises:
        InputError: a parameter is unknown (the message has the nearest name) or may not be searched, a value
            is not allowed, or a condition leaves out a case in which the method needs the parameter.
    """
    for parameter in given.parameters:
        with told_to_user(f"{given.origin}: "):
            _check_parameter(method, parameter)
    forms = given.forms()
    own = METHODS[method].search_space()
    own = pin_values(own, {n: v for n, v in (values or {}).items() if n in own and n not in given})
    for parameter in own.parameters:
        if "." in parameter.name:
            continue
        needed = {
            parent: _possible(given, own, parent, allowed) for parent, allowed in parameter.when.items()
        }
        if parameter.name in given:
            _refuse_gaps(given, parameter.name, needed)
        elif all(needed.values()):
            forms[parameter.name] = (
                {"fixed": parameter.default, "when": needed} if needed else parameter.default
            )
    return Space.parse(forms, given.origin)


def with_defaults(space: Space, values: Mapping[str, Any]) -> Space:
    """Return `space` with `values` as the defaults of its searched parameters."""
    forms = space.forms()
    for parameter in space.searched:
        if parameter.name in values:
            forms[parameter.name] = {**forms[parameter.name], "default": values[parameter.name]}
    return Space.parse(forms, space.origin)


def with_rates_of(optimizer: str | None, space: Space) -> Space:
    """Return a method's `space` with the range of learning rates of `optimizer`, if the space is for another.

    A rate of LARS or Adam is another quantity than one of SGD.
    """
    if "optimizer.name" in {parameter.name for parameter in space.searched} or "optimizer.lr" not in space:
        return space
    rate = learning_rates().get(optimizer or "")
    if rate is None or optimizer == space.fixed.get("optimizer.name", OptimizerSettings().name):
        return space
    return Space.parse({**space.forms(), "optimizer.lr": rate.to_form()}, space.origin)


def pin_values(space: Space, values: Mapping[str, Any]) -> Space:
    """Return `space` with each parameter that `values` names fixed at its value.

    Raises:
        InputError: a value has the wrong type, or its parameter has no effect beside the other values.
    """
    pinned = space
    # Parameters with an exception to their condition come first: pinning their parents would remove them.
    given = sorted((p for p in space.parameters if p.name in values), key=lambda p: not p.given)
    for name in (parameter.name for parameter in given):
        if isinstance(values[name], float) and not math.isfinite(values[name]):
            raise InputError(f"{name} must be finite, given {values[name]}")
        if name not in pinned:
            because = ", ".join(f"{other}={values[other]}" for other in space[name].when if other in values)
            raise InputError(f"{name} has no effect with {because}: leave it out")
        with told_to_user():
            pinned = pinned.pin(name, values[name])
    return pinned


def refuse_unknown(experiment: Experiment, values: Mapping[str, Any]) -> None:
    """Raise InputError for a name in `values` that is no setting and no hyperparameter of the method."""
    known = {*setting_names(experiment), *METHODS[experiment.method].hyperparameters}
    for path in values:
        if path not in known:
            raise unknown_name(f"setting for {experiment.method}:", path, known)


def _check_parameter(method: str, parameter: Parameter) -> None:
    """Check one parameter's name, and the ends of its range or each of its values."""
    name, hyperparameters = parameter.name, METHODS[method].hyperparameters
    if name.startswith(PROTOCOL):
        raise InputError(f"{name} is not searched: trials are compared by it; use --set or --epochs")
    base = Experiment(method=method, dataset=next(iter(DATASETS)))
    refuse_unknown(base, {name: None})
    if name in hyperparameters:
        METHODS[method].check_parameter(parameter, METHODS[method].search_space().defaults())
        return
    extremes = (parameter.low, parameter.high) if isinstance(parameter, Range) else parameter.values()
    for value in extremes:
        base.with_values({name: value})


def _possible(given: Space, own: Space, parent: str, values: tuple[Scalar, ...]) -> list[Scalar]:
    """Return those of `values` that a trial can have for `parent`; a parent missing in `given` is fixed."""
    held = list(given[parent].values()) if parent in given else [own[parent].default]
    return [value for value in values if value in held]


def _refuse_gaps(space: Space, name: str, needed: Mapping[str, list[Scalar]]) -> None:
    for parent, values in needed.items():
        covered = space[name].when.get(parent)
        gaps = [value for value in values if covered is not None and value not in covered]
        if gaps:
            raise InputError(
                f"{space.origin}: {name} is also needed when {parent} is {', '.join(map(str, gaps))}"
            )
