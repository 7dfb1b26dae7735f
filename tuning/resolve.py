"""From a method and a dataset to a complete experiment: which default, preset or given value holds where.

Later wins: the defaults of the method (its search space's) and of the dataset, the preset `METHOD@DATASET`
where it is asked for, what the user set, what a search proposes.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from data import DATASETS, dataset_spec, parse_dataset
from models import ENCODERS
from search_spaces import Space, available_presets, method_space, preset
from tuning.config import Experiment, Value
from tuning.errors import InputError, unknown_name
from tuning.methods import METHODS
from tuning.spaces import complete_space, pin_values, refuse_unknown, with_defaults

# A mirrored digit is another sign, and a crop of a few per cent of one says nothing.
_DIGIT_VIEWS: Mapping[str, Value] = MappingProxyType({"views.flip": 0.0, "views.min_crop": 0.4})

DATASET_SETTINGS: Mapping[str, Mapping[str, Value]] = MappingProxyType(
    {
        "digits": {**_DIGIT_VIEWS, "encoder.name": "small-conv", "batch_size": 128},
        "colour-digits": {**_DIGIT_VIEWS, "encoder.name": "small-conv", "batch_size": 128},
        "mnist": {
            **_DIGIT_VIEWS,
            "encoder.name": "lenet5",
            "batch_size": 256,
            "schedule.warmup_epochs": 1.0,
        },
        "colormnist": {
            **_DIGIT_VIEWS,
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
    data_root: Path | None = None,
) -> Experiment:
    """Return the experiment of `method` on `dataset` with `values` set over all defaults.

    Hyperparameters that have no effect (`sigma2` of a cosine kernel) are left out of it.

    Args:
        method: a registered method's name.
        dataset: a registered dataset's name.
        values: dotted paths and bare hyperparameter names, with their values.
        space: the search space whose defaults and conditions hold in place of the method's own.
        use_preset: whether the papers' settings for this method on this dataset apply, where there are any.
        data_root: the folder that holds the datasets, for those that are known by their files alone.

    Raises:
        InputError: an unknown name (with the nearest), a value that is not allowed or has no effect, a method
            that needs what the dataset does not have, or a preset that is not there.
    """
    check_names(method, dataset)
    preset_values = preset_settings(method, dataset) if use_preset else {}
    given = {**preset_values, **(values or {})}
    pinned = space_of(method, dataset, space, given)
    defaults = pinned.defaults()
    for name in given:
        if name in METHODS[method].hyperparameters and name not in defaults:
            because = ", ".join(
                f"{p}={defaults[p]}" for p in method_space(method)[name].when if p in defaults
            )
            raise InputError(f"{name} has no effect with {because}: leave it out")
    suggested = {name: value for name, value in dataset_settings(dataset).items() if name not in pinned}
    base = Experiment(method=method, dataset=dataset).with_values(defaults)
    refuse_unknown(base, given)
    # The space knows that a whole number given for a float is one: 1 and 1.0 are the same experiment.
    experiment = base.with_values({**suggested, **given, **defaults})
    check_experiment(experiment, data_root)
    return experiment


def dataset_settings(dataset: str) -> Mapping[str, Value]:
    """Return what the dataset's family suggests for settings outside the method."""
    return DATASET_SETTINGS.get(dataset.partition(":")[0], {})


def check_names(method: str, dataset: str) -> None:
    """Raise InputError unless both names are registered, the dataset's with options that it has."""
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    try:
        parse_dataset(dataset)
    except ValueError as error:
        raise InputError(str(error)) from None


def space_of(
    method: str, dataset: str, given: Space | None, values: Mapping[str, Any] | None = None
) -> Space:
    """Return the space that is searched: the given one or the method's own, with `values` pinned.

    Raises:
        InputError: see `tuning.spaces`.
    """
    if given is not None:
        space = complete_space(method, given, values)
    else:
        space = with_defaults(method_space(method), dataset_settings(dataset))
    return pin_values(space, values or {})


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


def check_experiment(experiment: Experiment, data_root: Path | None = None) -> None:
    """Raise InputError unless the method, the dataset, the encoder and the hyperparameters fit together."""
    check_names(experiment.method, experiment.dataset)
    if experiment.encoder.name not in ENCODERS:
        raise unknown_name("encoder", experiment.encoder.name, ENCODERS)
    method, data = METHODS[experiment.method], dataset_spec(experiment.dataset, data_root)
    if method.needs_condition and data.condition_dim is None:
        bare = [name for name, family in DATASETS.items() if not family.needs_options]
        fitting = [name for name in bare if dataset_spec(name).condition_dim is not None]
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
    if experiment.batch_size < method.smallest_batch:
        raise InputError(
            f"{method.name} needs batches of at least {method.smallest_batch} images, "
            f"batch_size is {experiment.batch_size}"
        )
    share = experiment.validation.fraction
    if share > 0 and round(share * data.train_size) < data.classes:
        raise InputError(
            f"validation.fraction {share:g} of the {data.train_size} images of {data.name} "
            "leaves a class without any"
        )
    method.check(experiment.hyperparameters)
    missing = [
        name
        for name in method_space(method.name).active(experiment.hyperparameters)
        if name in method.hyperparameters and name not in experiment.hyperparameters
    ]
    if missing:
        raise InputError(f"{method.name} with {dict(experiment.hyperparameters)} needs {', '.join(missing)}")
