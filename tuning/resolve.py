"""From a method and a dataset to a complete experiment: which default, preset or given value holds where.

Later wins: the defaults of the method (its search space's) and of the dataset, the preset `METHOD@DATASET`
where it is asked for, what the user set, what a search proposes.
"""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from data import DATASETS
from models import ENCODERS
from search_spaces import Range, Space, available_presets, method_space, preset
from tuning.config import Experiment, Value, setting_names
from tuning.errors import InputError, unknown_name
from tuning.methods import METHODS

DATASET_SETTINGS: Mapping[str, Mapping[str, Value]] = MappingProxyType(
    {
        "digits": {"encoder.name": "small-conv", "batch_size": 128, "views.flip": 0.0},
        "colour-digits": {"encoder.name": "small-conv", "batch_size": 128},
        "mnist": {"encoder.name": "lenet5", "batch_size": 256, "schedule.warmup_epochs": 1.0},
        "colormnist": {
            "encoder.name": "lenet5",
            "batch_size": 256,
            # Without a ramp, LeNet-5's tanh units saturate for good at rates that it can bear later.
            "schedule.warmup_epochs": 1.0,
            # The penalty on raw weights is CCL-K's protocol: scores compare with its table.
            "probes.standardise": False,
        },
    }
)
"""What a dataset suggests for settings outside the method: a network that takes its images, a batch size."""


def resolve(
    method: str,
    dataset: str,
    values: Mapping[str, Any] | None = None,
    *,
    space: Space | None = None,
    use_preset: bool = False,
) -> Experiment:
    """Return the experiment of `method` on `dataset` with `values` set over all defaults.

    Hyperparameters that have no effect (`sigma2` of a cosine kernel) are left out of it.

    Args:
        method: a registered method's name.
        dataset: a registered dataset's name.
        values: dotted paths and bare hyperparameter names, with their values.
        space: the search space whose defaults and conditions hold in place of the method's own.
        use_preset: whether the papers' settings for this method on this dataset apply, where there are any.

    Raises:
        InputError: an unknown name (with the nearest), a value that is not allowed or has no effect, a method
            that needs what the dataset does not have, or a preset that is not there.
    """
    check_names(method, dataset)
    settings = {**DATASET_SETTINGS.get(dataset, {}), **METHODS[method].settings}
    settings |= preset_settings(method, dataset) if use_preset else {}
    given = {**settings, **(values or {})}
    pinned = pin_values(effective_space(method, space), given)
    base = Experiment(method=method, dataset=dataset).with_values(pinned.defaults())
    refuse_unknown(base, given)
    experiment = base.with_values(given)
    check_experiment(experiment)
    return experiment


def check_names(method: str, dataset: str) -> None:
    """Raise InputError unless both names are registered."""
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    if dataset not in DATASETS:
        raise unknown_name("dataset", dataset, DATASETS)


def effective_space(method: str, given: Space | None) -> Space:
    """Return the given space, with the hyperparameters it does not name fixed at their defaults."""
    shipped = method_space(method)
    if given is None:
        return shipped
    _check_space(method, given)
    defaults = {
        name: value for name, value in shipped.defaults().items() if "." not in name and name not in given
    }
    if not defaults:
        return given
    return Space.parse({**json.loads(given.to_json()), **defaults}, given.origin)


def _check_space(method: str, space: Space) -> None:
    """Raise InputError unless every parameter of a space exists and may have all that the space gives it."""
    hyperparameters = METHODS[method].hyperparameters
    defaults = {name: value for name, value in method_space(method).defaults().items() if "." not in name}
    base = Experiment(method=method, dataset=next(iter(DATASETS)), hyperparameters=defaults)
    for parameter in space.parameters:
        extremes = (parameter.low, parameter.high) if isinstance(parameter, Range) else parameter.values()
        for value in extremes:
            try:
                refuse_unknown(base, {parameter.name: value})
                if parameter.name in hyperparameters:
                    hyperparameters[parameter.name].check(parameter.name, value)
                else:
                    base.with_values({parameter.name: value})
            except InputError as error:
                raise InputError(f"{space.origin}: {error}") from None


def pin_values(space: Space, values: Mapping[str, Any]) -> Space:
    """Return `space` with each parameter that `values` names fixed at its value.

    Raises:
        InputError: a value of the wrong type, or for a parameter that the other values leave without effect.
    """
    named = [name for name in space.names if name in values]
    pinned = space
    for name in named:
        if name not in pinned:
            because = ", ".join(f"{other}={values[other]}" for other in space[name].when if other in values)
            raise InputError(f"{name} has no effect with {because}: leave it out")
        try:
            pinned = pinned.pin(name, values[name])
        except ValueError as error:
            raise InputError(str(error)) from None
    return pinned


def preset_settings(method: str, dataset: str) -> Mapping[str, Any]:
    """Return the settings of the preset `METHOD@DATASET`.

    Raises:
        InputError: there is none.
    """
    found = preset(method, dataset)
    if found is None:
        known = [f"{one}@{other}" for one, other in available_presets()]
        raise unknown_name("preset", f"{method}@{dataset}", known)
    settings: Mapping[str, Any] = found["settings"]
    return settings


def check_experiment(experiment: Experiment) -> None:
    """Raise InputError unless the method, the dataset, the encoder and the hyperparameters fit together."""
    check_names(experiment.method, experiment.dataset)
    if experiment.encoder.name not in ENCODERS:
        raise unknown_name("encoder", experiment.encoder.name, ENCODERS)
    method, data = METHODS[experiment.method], DATASETS[experiment.dataset]
    if method.needs_condition and data.condition_dim is None:
        fitting = [name for name, spec in DATASETS.items() if spec.condition_dim is not None]
        raise InputError(
            f"{method.name} needs a conditioning variable, which {data.name} has not; "
            f"datasets that have one: {', '.join(fitting)}"
        )
    size = ENCODERS[experiment.encoder.name].image_size
    if size not in (None, data.view_size):
        raise InputError(
            f"encoder {experiment.encoder.name!r} takes {size} x {size} images, "
            f"those of {data.name} are {data.view_size} x {data.view_size}"
        )
    method.check(experiment.hyperparameters)


def refuse_unknown(experiment: Experiment, values: Mapping[str, Any]) -> None:
    """Raise InputError for a name in `values` that is no setting and no hyperparameter of the method."""
    known = {*setting_names(experiment), *METHODS[experiment.method].hyperparameters}
    for path in values:
        if path not in known:
            raise unknown_name(f"setting for {experiment.method}:", path, known)
