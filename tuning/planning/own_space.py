"""A user's search space, a file or a mapping: it may extend a method's, and leave defaults to the method."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from contrasweep.search_spaces import Choice, Fixed, Parameter, Range, Scalar, Space, SpaceError, read_yaml
from contrasweep.search_spaces.parameters import parse_parameter
from contrasweep.tuning.catalogue.declared import DECLARED_METHODS, unknown_method
from contrasweep.tuning.errors import InputError, in_one, told_to_user
from contrasweep.tuning.experiment import Experiment, setting_names
from contrasweep.tuning.planning.spaces import complete_space, dataset_settings, known_settings, own_space

EXTENDS: Final = "extends"
"""The key that names the method whose space a file begins with."""

OPTIMIZER: Final = "optimizer.name"


def space_of_file(path: Path, methods: Sequence[str], dataset: str, values: Mapping[str, Any]) -> Space:
    """Return the search space of a YAML file, to be completed for each of the methods; see `own_space_of`."""
    with told_to_user():
        content = read_yaml(path)
    return _space_of(content, str(path), methods, dataset, values)


def own_space_of(
    given: Mapping[str, Any] | str | Path, methods: Sequence[str], dataset: str, values: Mapping[str, Any]
) -> Space:
    """Return the search space that a user gives, to be completed for each of the methods.

    With `extends: METHOD`, parameters that are not named are searched as in that method's space. A
    searched parameter without a default takes the one of the first method that has it and whose default the
    form allows; else the middle of its range, or the first of its choices.

    Args:
        given: a mapping from name to form, or the path of a YAML file with one.
        methods: the methods that are searched.
        dataset: the dataset, which has defaults of its own.
        values: the settings that hold in every trial; the optimizer decides on the range of learning rates.

    Raises:
        InputError: it is no space; if forms are wrong, the message also has what a method does not know of
            the other parameters.
    """
    if isinstance(given, str | Path):
        return space_of_file(Path(given), methods, dataset, values)
    return _space_of(given, "space", methods, dataset, values)


def _space_of(
    content: Any, source: str, methods: Sequence[str], dataset: str, values: Mapping[str, Any]
) -> Space:
    """Return the space of a content, which errors call by its `source`."""
    origin = f"{source}: "
    nested: list[str] = []
    if isinstance(content, Mapping):
        content, nested = _without_sections(content, methods)
        base = _base(content, origin)
        known = [one for one in (*base, *methods) if one in DECLARED_METHODS]
        spaces = [own_space(one, dataset, {**_optimizer(content), **values}) for one in known]
        usual = _usual(known[0], dataset) if known else None
        own = _with_defaults(content, spaces, usual)
        content = {**(_extended(spaces[0], own) if base else {}), **own}
    with told_to_user():
        space, faults = Space.parse_sound(content, source)
    faults = [*nested, *faults]
    if not faults:
        return space
    for method in filter(DECLARED_METHODS.__contains__, methods):
        try:
            complete_space(method, space)
        except InputError as error:
            faults.append(str(error).removeprefix(origin))
    raise InputError(origin + in_one(faults))


def _without_sections(content: Mapping[Any, Any], methods: Sequence[str]) -> tuple[dict[Any, Any], list[str]]:
    """Return a file without settings in sections, as a file of an experiment has them, and what to write."""
    known = {name for method in methods if method in DECLARED_METHODS for name in known_settings(method)}
    sections = {name: form for name, form in content.items() if isinstance(form, Mapping)}
    paths = {
        name: [str(key) if name == "hyperparameters" else f"{name}.{key}" for key in form]
        for name, form in sections.items()
    }
    nested = {name: found for name, found in paths.items() if not known.isdisjoint(found)}
    faults = [f"{name}: given a section; write {', '.join(names)}" for name, names in nested.items()]
    return {name: form for name, form in content.items() if name not in nested}, faults


def _base(content: Mapping[Any, Any], origin: str) -> list[str]:
    """Return the method whose space a file extends, if it extends one."""
    if EXTENDS not in content:
        return []
    method = str(content[EXTENDS])
    if method not in DECLARED_METHODS:
        raise InputError(f"{origin}{EXTENDS}: {unknown_method(method)}")
    return [method]


def _extended(space: Space, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a file with the forms `own` takes over from the space that it extends.

    Where the file leaves out a value of a choice, what depends on that value alone goes too.
    """
    changed = {name: parameter for name, parameter in _parsed(own) if parameter.size() is not None}
    kept: dict[str, Any] = {}
    for parameter in space.parameters:
        if parameter.name in own:
            continue
        conditions = {
            "when": _possible(parameter.when, changed),
            "given": _possible(parameter.given, changed),
        }
        if all(values and (parent in kept or parent in own) for parent, values in conditions["when"].items()):
            # A bare value, the form of a fixed parameter, has no condition.
            form = parameter.to_form()
            kept[parameter.name] = {**form, **conditions} if isinstance(form, Mapping) else form
    return kept


def _possible(
    conditions: Mapping[str, tuple[Scalar, ...]], changed: Mapping[str, Parameter]
) -> dict[str, list[Scalar]]:
    """Return conditions without the values that a changed parent no longer takes."""
    return {
        parent: [value for value in values if parent not in changed or changed[parent].contains(value)]
        for parent, values in conditions.items()
    }


def _parsed(forms: Mapping[str, Any]) -> Iterator[tuple[str, Parameter]]:
    """Yield the parameters whose forms are right; the faults of the others are told later."""
    for name, form in forms.items():
        try:
            yield name, parse_parameter(name, form)
        except SpaceError:
            continue


def _usual(method: str, dataset: str) -> Experiment:
    return Experiment(method=method, dataset=dataset).with_values(dataset_settings(dataset))


def _optimizer(content: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the optimizer that a file fixes: it decides on the range of learning rates."""
    form = content.get(OPTIMIZER)
    name = form.get("fixed") if isinstance(form, Mapping) else form
    return {OPTIMIZER: name} if isinstance(name, str) else {}


def _with_defaults(
    content: Mapping[Any, Any], spaces: Sequence[Space], usual: Experiment | None
) -> dict[str, Any]:
    """Return the forms of a file by name; those of searched parameters have a default.

    It is that of the methods' own `spaces`, else that of the `usual` experiment on the dataset.
    """
    forms = {str(name): form for name, form in content.items() if name != EXTENDS}
    return {name: _with_default(name, form, spaces, usual) for name, form in forms.items()}


def _with_default(name: str, form: Any, spaces: Sequence[Space], usual: Experiment | None) -> Any:
    if not isinstance(form, Mapping) or "default" in form or "fixed" in form:
        return form
    for default in _candidates(name, form, spaces, usual):
        try:
            parse_parameter(name, {**form, "default": default})
        except SpaceError:
            continue
        return {**form, "default": default}
    # What is wrong with it is told with the faults of the other parameters.
    return {**form, "default": next(_ends(form), 0)}


def _candidates(
    name: str, form: Mapping[Any, Any], spaces: Sequence[Space], usual: Experiment | None
) -> Iterator[Any]:
    """Yield the methods' own defaults of a parameter, then the middle of its range or its first choice."""
    yield from (space[name].default for space in spaces if name in space)
    if usual is not None and name in setting_names(usual):
        yield usual.value(name)
    for end in _ends(form):
        try:
            found = parse_parameter(name, {**form, "default": end})
        except SpaceError:
            return
        match found:
            case Range():
                yield found.scale.value(0.5)
            case Choice() | Fixed():
                yield end
        return


def _ends(form: Mapping[Any, Any]) -> Iterator[Any]:
    """Yield the values that a form lists: of a range its ends, of a choice all."""
    for values in form.values():
        if isinstance(values, list | tuple):
            yield from values
