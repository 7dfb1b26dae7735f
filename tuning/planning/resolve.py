"""Complete an experiment from a method and a dataset: which default, preset or given value holds.

A later source wins: the method's defaults (in its search space), the dataset's defaults, the preset
`METHOD@DATASET` if it is asked for, the user's settings, a search's proposal.

A search space fits a method if every parameter is known, and none that the method needs is missing.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from contrasweep.data import DATASETS, DatasetFacts, known_datasets, parse_dataset
from contrasweep.models import ENCODERS, VECTOR_ENCODERS, check_two_sizes
from contrasweep.search_spaces import (
    Parameter,
    Range,
    Scalar,
    Space,
    available_presets,
    learning_rates,
    preset,
    shipped_dataset_settings,
)
from contrasweep.tuning.errors import InputError, told_to_user, unknown_name
from contrasweep.tuning.experiment import EncoderSettings, Experiment, OptimizerSettings, Value, setting_names
from contrasweep.tuning.methods import METHODS, Method
from contrasweep.tuning.objectives.batches import local_views, random_views
from contrasweep.tuning.objectives.prepared import refuse_other_revision, spec_for

NEED_IN_WORDS = {
    "images": "images",
    "labels": "class labels",
    "condition": "a conditioning variable",
    "bias": "a bias label",
    "bias or condition": "a bias label or a conditioning variable",
    "own views": "objects with views of their own",
}

PROTOCOL = ("epochs", "seed", "validation.", "probes.")
"""Settings by which trials are compared: trials that differ in them cannot be."""


def resolve(
    method: str,
    dataset: str,
    values: Mapping[str, Any] | None = None,
    *,
    space: Space | None = None,
    use_preset: bool = False,
    data_root: Path | None = None,
) -> Experiment:
    """Return the experiment of `method` on `dataset` with `values` set over all defaults.

    It leaves out hyperparameters that have no effect (`sigma2` of a cosine kernel).

    Args:
        method: a registered method's name.
        dataset: a registered dataset's name.
        values: dotted paths and bare hyperparameter names, with their values.
        space: a search space whose defaults and conditions replace the method's own.
        use_preset: whether to apply the papers' settings for this method on this dataset.
        data_root: the folder of the datasets, for datasets whose facts come from their files.

    Raises:
        InputError: a name is unknown (the message has the nearest), a value is not allowed or has no effect,
            the dataset lacks something that the method needs, or there is no such preset.
    """
    check_names(method, dataset)
    values = values or {}
    given = {**(preset_beside(method, dataset, values) if use_preset else {}), **values}
    pinned = space_of(method, dataset, space, given)
    defaults = pinned.defaults()
    for name in given:
        if name in METHODS[method].hyperparameters and name not in defaults:
            because = ", ".join(
                f"{p}={defaults[p]}" for p in METHODS[method].search_space()[name].when if p in defaults
            )
            raise InputError(f"{name} has no effect with {because}: leave it out")
    base = Experiment(method=method, dataset=dataset).with_values(defaults)
    refuse_unknown(base, given)
    facts = spec_for(base, data_root)
    suggested = {"validation.split": facts.splits[0], **dataset_settings(dataset)}
    suggested |= {"data_revision": facts.revision}
    suggested = {name: value for name, value in suggested.items() if name not in pinned}
    # The space turns a whole number given for a float into one: 1 and 1.0 are the same experiment.
    experiment = base.with_values({**suggested, **given, **defaults})
    check_experiment(experiment, data_root)
    return experiment


def dataset_settings(dataset: str) -> Mapping[str, Value]:
    """Return the defaults that the dataset's family has for settings outside the method.

    Raises:
        InputError: the dataset is a plug-in's, and one of its settings is unknown or has a wrong value.
    """
    name = dataset.partition(":")[0]
    family = DATASETS.get(name)
    if family is None or family.settings is None:
        return shipped_dataset_settings().get(name, {})
    with told_to_user(f"the settings that dataset {name} brings: "):
        Experiment(method=next(iter(METHODS)), dataset=name).with_values(family.settings)
    return family.settings


def check_names(method: str, dataset: str) -> None:
    """Raise InputError unless both names are registered and the dataset has the options in its name."""
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    with told_to_user():
        parse_dataset(dataset)


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
    if given is not None:
        space = complete_space(method, given, values)
    else:
        own, suggested = METHODS[method].search_space(), dataset_settings(dataset)
        optimizer = {**suggested, **own.fixed, **(values or {})}.get("optimizer.name")
        space = with_defaults(with_rates_of(optimizer, own), suggested)
    return pin_values(with_defaults(space, start or {}), values or {}).settled()


def preset_settings(method: str, dataset: str) -> Mapping[str, Any]:
    """Return the settings of the preset `METHOD@DATASET`.

    Raises:
        InputError: there is no such preset.
    """
    found = preset(method, dataset.partition(":")[0])
    if found is None:
        known = [f"{one}@{other}" for one, other in available_presets()]
        raise unknown_name("preset", f"{method}@{dataset}", known)
    settings: Mapping[str, Any] = found["settings"]
    return settings


def preset_beside(method: str, dataset: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the preset `METHOD@DATASET` that `values` neither replace nor switch off.

    Raises:
        InputError: there is no such preset.
    """
    space = METHODS[method].search_space()
    return {
        name: value
        for name, value in preset_settings(method, dataset).items()
        if name not in values and not _is_switched_off(space, name, values)
    }


def _is_switched_off(space: Space, name: str, values: Mapping[str, Any]) -> bool:
    """Whether a parameter has no effect beside `values`."""
    conditions = space[name].when if name in space else {}
    return any(parent in values and values[parent] not in allowed for parent, allowed in conditions.items())


def check_experiment(experiment: Experiment, data_root: Path | None = None) -> None:
    """Raise InputError unless the method, the dataset, the encoder and the hyperparameters fit together."""
    check_names(experiment.method, experiment.dataset)
    if experiment.encoder.name not in {**ENCODERS, **VECTOR_ENCODERS}:
        raise unknown_name("encoder", experiment.encoder.name, {**ENCODERS, **VECTOR_ENCODERS})
    method, data = METHODS[experiment.method], spec_for(experiment, data_root)
    refuse_other_revision(experiment, data)
    method.check(experiment.hyperparameters)
    _check_needs(method, data, experiment.hyperparameters)
    _check_encoder(experiment.encoder, data)
    if "images" in data.offers:
        with told_to_user(f"views of {data.name}: "):
            random_views(experiment.views, data.view_size)
    _check_local_crops(experiment, data)
    if experiment.batch_size < method.smallest_batch:
        raise InputError(
            f"{method.name} needs batches of at least {method.smallest_batch} images, "
            f"batch_size is {experiment.batch_size}"
        )
    if experiment.validation.split not in data.splits:
        given = f"given {experiment.validation.split}; allowed: {', '.join(data.splits)}"
        raise InputError(f"validation.split of {data.name}: {given}")
    if experiment.probes.kmeans_starts and not data.probed:
        raise InputError(f"probes.kmeans_starts is for images; {data.name} has objects with views of its own")
    with told_to_user("validation.fraction "):
        data.check_validation(experiment.validation.fraction)
    missing = [
        name
        for name in method.search_space().active(experiment.hyperparameters)
        if name in method.hyperparameters and name not in experiment.hyperparameters
    ]
    if missing:
        raise InputError(f"{method.name} with {dict(experiment.hyperparameters)} needs {', '.join(missing)}")


def _check_local_crops(experiment: Experiment, data: DatasetFacts) -> None:
    """Raise InputError if there are local crops that the method does not use or the encoder does not take."""
    settings, method = experiment.views, METHODS[experiment.method]
    if not settings.local_crops:
        return
    if not method.local_crops:
        using = ", ".join(name for name, one in METHODS.items() if one.local_crops)
        raise InputError(f"views.local_crops has no effect with {method.name}; these use them: {using}")
    with told_to_user(f"local crops of {data.name}: "):
        crops = local_views(settings, data.view_size)
        if crops is not None and crops.size != data.view_size:
            check_two_sizes(experiment.encoder.name, data.channels, data.view_size, crops.size)


def lacking(
    method: Method, data: DatasetFacts, hyperparameters: Mapping[str, Value] = MappingProxyType({})
) -> list[str]:
    """Return what the method needs with these hyperparameters and the dataset lacks."""
    needs: list[str] = sorted(method.needs_with(hyperparameters))
    if "own views" not in needs:
        needs = ["images", *needs]
    return [NEED_IN_WORDS[need] for need in needs if data.offers.isdisjoint(need.split(" or "))]


def _check_needs(method: Method, data: DatasetFacts, hyperparameters: Mapping[str, Value]) -> None:
    missing = lacking(method, data, hyperparameters)
    if missing:
        fitting = [spec.name for spec in known_datasets() if not lacking(method, spec, hyperparameters)]
        asking = [
            f"{name}={value}"
            for name, value in hyperparameters.items()
            if value in method.hyperparameters[name].needs
        ]
        having = f" with {' and '.join(asking)}" if asking else ""
        raise InputError(
            f"{method.name}{having} needs {' and '.join(missing)}, which {data.name} has not; "
            f"datasets that do: {', '.join(fitting) or 'none'}"
        )


def _check_encoder(settings: EncoderSettings, data: DatasetFacts) -> None:
    name = settings.name
    if data.has_images == (name in VECTOR_ENCODERS):
        kind, fitting = ("images", ENCODERS) if data.has_images else ("vectors", VECTOR_ENCODERS)
        raise InputError(
            f"encoder {name!r} does not take the {kind} of {data.name}; these do: {', '.join(fitting)}"
        )
    numbers = len(settings.mean)
    if "images" not in data.offers and (numbers or settings.views == "apart"):
        given = "encoder.mean and encoder.std are" if numbers else "encoder.views apart is"
        raise InputError(f"{given} for images; {data.name} has views of its own")
    if numbers not in (0, 1, data.channels):
        raise InputError(
            f"encoder.mean and encoder.std: given {numbers} numbers each; "
            f"allowed: one, or one for each channel of {data.name} ({data.channels})"
        )
    if data.has_images:
        with told_to_user(after=f" ({data.name})"):
            ENCODERS[name].check_image_size(data.view_size)


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
