"""The search space of a method on a dataset, with fixed settings and presets, and the names that are valid.

Nothing here imports torch, so that names and values are checked before it (see `catalogue.declared`).

A search space fits a method if every parameter is known, and none that the method needs is missing.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from contrasweep.data.own_folders import unknown_dataset
from contrasweep.names import did_you_mean
from contrasweep.other_words import other_word
from contrasweep.search_spaces import (
    Fixed,
    Parameter,
    Range,
    Scalar,
    Space,
    available_presets,
    learning_rates,
    preset,
    shipped_dataset_settings,
)
from contrasweep.search_spaces.parameters import IN_WORDS, among, type_name
from contrasweep.tuning.catalogue.declared import DECLARED_DATASETS, DECLARED_METHODS, unknown_method
from contrasweep.tuning.errors import Faults, InputError, told_to_user, unknown_name
from contrasweep.tuning.experiment import Experiment, OptimizerSettings, Value

PROTOCOL = {"epochs": "--epochs", "seed": "--seeds", "validation.": "--set", "probes.": "--set"}
"""Settings by which trials are compared, by how they begin, and the option that sets them for all trials."""

START = ("encoder.weights", "encoder.weights_sha256")
"""What the encoder starts from, and so what its untrained control is."""


def dataset_settings(dataset: str) -> Mapping[str, Value]:
    """Return the defaults that the dataset's family has for settings outside the method.

    Raises:
        InputError: the dataset is a plug-in's, and one of its settings is unknown or has a wrong value.
    """
    name = dataset.partition(":")[0]
    family = DECLARED_DATASETS.get(name)
    if family is None or family.settings is None:
        return shipped_dataset_settings().get(name, {})
    with told_to_user(f"the settings that dataset {name} brings: "):
        Experiment(method=next(iter(DECLARED_METHODS)), dataset=name).with_values(family.settings)
    return family.settings


def check_names(method: str, dataset: str) -> None:
    """Raise InputError unless both names are registered and the dataset has the options in its name."""
    faults = Faults()
    with faults.noted():
        if method not in DECLARED_METHODS:
            raise unknown_method(method)
    with faults.noted():
        check_dataset_name(dataset)
    faults.tell()


def check_dataset_name(dataset: str) -> None:
    """Raise ValueError unless the dataset is registered and has the options in its name."""
    name, _, options = dataset.partition(":")
    if name not in DECLARED_DATASETS:
        raise InputError(unknown_dataset(name, DECLARED_DATASETS))
    DECLARED_DATASETS[name].parse(options)


def space_of(
    method: str,
    dataset: str,
    given: Space | None,
    values: Mapping[str, Any] | None = None,
    start: Mapping[str, Any] | None = None,
) -> Space:
    """Return the space to search: the given one or the method's own, with `values` pinned.

    `start` replaces the defaults of searched parameters.

    Raises:
        InputError: see `complete_space` and `pin_values`.
    """
    found = own_space(method, dataset, values) if given is None else complete_space(method, given, values)
    return pin_values(with_defaults(found, start or {}), values or {}).settled()


def own_space(method: str, dataset: str, values: Mapping[str, Any] | None = None) -> Space:
    """Return the method's own space with the defaults for a dataset and the rates of its optimizer."""
    own, suggested = DECLARED_METHODS[method].search_space(), dataset_settings(dataset)
    optimizer = {**suggested, **own.fixed, **(values or {})}.get("optimizer.name")
    # A name that is no text is refused with the other settings.
    rated = with_rates_of(optimizer, own) if isinstance(optimizer, str) else own
    return with_defaults(rated, suggested)


def preset_settings(method: str, dataset: str) -> Mapping[str, Any]:
    """Return the settings of the preset `METHOD@DATASET`.

    Raises:
        InputError: there is no such preset.
    """
    found = preset(method, dataset.partition(":")[0])
    if found is None:
        known = [f"{one}@{other}" for one, other in available_presets() if one == method]
        other = "A preset is for its own dataset; on others, --set gives its settings (docs/settings.md)."
        raise InputError(f"{unknown_name('preset', f'{method}@{dataset}', known)} {other}")
    settings: Mapping[str, Any] = found["settings"]
    return settings


def preset_beside(method: str, dataset: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the preset `METHOD@DATASET` that `values` neither replace nor switch off.

    Raises:
        InputError: there is no such preset.
    """
    space = DECLARED_METHODS[method].search_space()
    return {
        name: value
        for name, value in preset_settings(method, dataset).items()
        if name not in values and not _is_switched_off(space, name, values)
    }


def _is_switched_off(space: Space, name: str, values: Mapping[str, Any]) -> bool:
    """Whether a parameter has no effect beside `values`."""
    conditions = space[name].when if name in space else {}
    return any(parent in values and values[parent] not in allowed for parent, allowed in conditions.items())


def complete_space(method: str, given: Space, values: Mapping[str, Any] | None = None) -> Space:
    """Return `given` completed by the method's other hyperparameters, each fixed.

    They are fixed at their value in `values`, else at their default. What `given` has fixed at its value in
    `values` is not checked here: it is checked with the other settings, as theirs and not as the space's.

    Raises:
        InputError: a parameter is unknown (the message has the nearest name) or may not be searched, a value
            is not allowed, or a condition leaves out a case in which the method needs the parameter.
    """
    faults = Faults()
    for parameter in given.parameters:
        if isinstance(parameter, Fixed) and among((values or {}).get(parameter.name), (parameter.default,)):
            continue
        with faults.noted():
            _check_parameter(method, parameter)
    with told_to_user(f"{given.origin}: "):
        faults.tell()
    forms = _in_declared_types(method, given).forms()
    own = DECLARED_METHODS[method].search_space()
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
    named = [parameter.name for parameter in space.searched if parameter.name in values]
    if not named:
        return space
    forms = space.forms()
    forms.update({name: {**forms[name], "default": values[name]} for name in named})
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


def known_settings(method: str) -> list[str]:
    """Return the names that `--set` takes: the method's hyperparameters, and dotted paths of settings."""
    return DECLARED_METHODS[method].known_settings()


_NAMED_OTHERWISE: Final = {
    "method": "`contrasweep sweep METHOD` or the file of `contrasweep train` names it",
    "dataset": "`contrasweep sweep --data DATASET` or the file of `contrasweep train` names it",
}


def refuse_unknown(experiment: Experiment, values: Mapping[str, Any]) -> None:
    """Raise InputError for names in `values` that are neither settings nor hyperparameters of the method."""
    known = dict.fromkeys([*known_settings(experiment.method), *experiment.hyperparameters])
    faults = Faults()
    for path in values:
        with faults.noted():
            if path not in known:
                raise _no_setting(experiment.method, path, list(known))
    faults.tell()


def _no_setting(method: str, path: str, known: Sequence[str]) -> InputError:
    """Return the error about a name that is none of the `known` ones, with what is most likely meant."""
    if path in _NAMED_OTHERWISE:
        return InputError(f"{path!r} is no setting: {_NAMED_OTHERWISE[path]}")
    if any(path in other.hyperparameters for other in DECLARED_METHODS.values()):
        own = ", ".join(DECLARED_METHODS[method].hyperparameters) or "none"
        return InputError(f"{method} has no hyperparameter {path!r}; it has: {own}")
    group = [one for one in known if one.startswith(f"{path}.")]
    if group and other_word("setting", path) is None:
        return InputError(f"{path!r} is a group of settings; give some of them: {', '.join(group)}")
    kind = f"setting for {method}:"
    # A file of an experiment has hyperparameters in a section; elsewhere they are bare names.
    near = did_you_mean(path.removeprefix("hyperparameters."), known, "setting")
    # There are some sixty settings: the nearest would be lost among them.
    return InputError(f"unknown {kind} {path!r}.{near}") if near else unknown_name(kind, path, known)


def _check_parameter(method: str, parameter: Parameter) -> None:
    """Check one parameter's name, and the ends of its range or each of its values."""
    name, declared = parameter.name, DECLARED_METHODS[method]
    if option := next((one for start, one in PROTOCOL.items() if name.startswith(start)), None):
        raise InputError(f"{name} is not searched: trials are compared by it; use {option}")
    if name in START:
        raise InputError(f"{name} is not searched: use --set encoder.weights=FILE, and a study for each file")
    base = Experiment(method=method, dataset=next(iter(DECLARED_DATASETS)))
    refuse_unknown(base, {name: None})
    if name in declared.hyperparameters:
        if isinstance(parameter, Range) and parameter.type != declared.hyperparameters[name].type == "float":
            raise InputError(f"{name}: given {parameter.form}; allowed: uniform, log or a choice of numbers")
        declared.check_parameter(parameter, declared.search_space().defaults())
        return
    extremes = (parameter.low, parameter.high) if isinstance(parameter, Range) else parameter.values()
    for value in extremes:
        _check_setting(base, name, value)


def _check_setting(base: Experiment, name: str, value: Scalar) -> None:
    """Check a value of a setting by itself: the whole experiment decides what goes with what.

    Raises:
        InputError: the setting does not take the value, or reads it as one of another type: the store would
            keep the text `yes`, and the experiment true.
    """
    try:
        held = base.with_values({name: value}).value(name)
    except InputError:
        if not _goes_with_others(base, name, value):
            raise
        held = base.value(name)
    if type(held) is not type(value) and any(isinstance(one, bool | str) for one in (held, value)):
        allowed = f"{IN_WORDS[type_name(held)]}, such as {held!r}"
        raise InputError(f"{name}: given {value!r}; allowed: {allowed}")


def _goes_with_others(base: Experiment, name: str, value: Scalar) -> bool:
    """Whether a section refuses a value only beside its other settings at their defaults."""
    section, _, field = name.partition(".")
    if not field:
        return False
    try:
        type(getattr(base, section)).model_validate({field: value})
    except ValidationError as error:
        return not any(one["loc"] for one in error.errors())
    return True


def _in_declared_types(method: str, space: Space) -> Space:
    """Return a space with fractions for hyperparameters that take fractions.

    The experiments with 1 and with 1.0 would have different identities.
    """
    declared = DECLARED_METHODS[method].hyperparameters
    fractions = {name for name, one in declared.items() if one.type == "float"}
    turned = (_as_fractions(one) if one.name in fractions else one for one in space.parameters)
    return Space(parameters=tuple(turned), origin=space.origin)


def _as_fractions(parameter: Parameter) -> Parameter:
    if isinstance(parameter, Range) or parameter.type != "int":
        return parameter
    several = "of" if isinstance(parameter, Fixed) else "choices"
    values = tuple(map(float, getattr(parameter, several)))
    return parameter.model_copy(update={"default": float(parameter.default), several: values})


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


def in_own_type(parameter: Parameter, value: Scalar) -> Scalar:
    """Return a value that a parameter takes, in the type of its column: 1.0 as 1 among whole numbers."""
    if parameter.type == "int":
        return int(value)
    return float(value) if parameter.type == "float" else value
