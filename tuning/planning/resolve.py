"""Complete an experiment from a method and a dataset: which default, preset or given value applies.

A later source wins: the method's defaults (in its search space), the dataset's defaults, the preset
`METHOD@DATASET` if it is asked for, the user's settings, a search's proposal.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from contrasweep.data import DatasetFacts
from contrasweep.models import ENCODERS, VECTOR_ENCODERS, check_images, check_two_sizes
from contrasweep.search_spaces import (
    Space,
)
from contrasweep.tuning.errors import Faults, InputError, told_to_user
from contrasweep.tuning.experiment import EncoderSettings, Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.objectives.batches import local_views, random_views
from contrasweep.tuning.objectives.prepared import refuse_other_data, spec_for, versions_of
from contrasweep.tuning.planning.needs import check_added_metrics, check_needs
from contrasweep.tuning.planning.settings import check_declared, settled
from contrasweep.tuning.planning.weights import check_weights, with_digest

IMAGES_OF_ANY_SIZE: Final = ("image-folder", "hub-parquet", "tar-shards", "hf")
"""The datasets whose images have the size that the user's own have."""

SMALL: Final = 64
"""Up to so many pixels a side, the ImageNet stem, which divides them by four, leaves too few."""

SMALL_STEMS: Final = {"resnet18": "resnet18-cifar", "resnet50": "resnet50-cifar"}
"""The same networks with the stem for small images."""


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
    base, suggested, chosen = settled(method, dataset, values, space=space, use_preset=use_preset)
    facts = spec_for(base, data_root)
    own = {"validation.split": facts.splits[0], **versions_of(facts)}
    experiment = base.with_values({**own, **suggested, **chosen})
    if "encoder.name" not in chosen:
        experiment = _with_small_stem(experiment, facts)
    experiment = with_digest(experiment)
    check_experiment(experiment, data_root)
    return experiment


def _with_small_stem(experiment: Experiment, facts: DatasetFacts) -> Experiment:
    """Return the experiment with the stem that suits small images, if its dataset has images of any size.

    Of the other datasets, `search_spaces/datasets.yaml` says which network suits them.
    """
    own = experiment.dataset.partition(":")[0] in IMAGES_OF_ANY_SIZE
    small = own and facts.at_view_size(experiment.views.size).view_size <= SMALL
    name = SMALL_STEMS.get(experiment.encoder.name)
    return experiment if name is None or not small else experiment.with_values({"encoder.name": name})


def check_experiment(experiment: Experiment, data_root: Path | None = None) -> None:
    """Raise InputError unless the method, the dataset, the encoder and the hyperparameters fit together."""
    check_declared(experiment)
    method, data = METHODS[experiment.method], spec_for(experiment, data_root)
    refuse_other_data(experiment, data)
    faults = Faults()
    # What is declared was checked one by one; only the method itself knows what goes together.
    with faults.noted(), told_to_user(f"{method.name}: "):
        method.verify(experiment.hyperparameters)
    with faults.noted():
        check_needs(method, data, experiment.hyperparameters)
    _note_encoder(experiment.encoder, data, faults)
    if "images" in data.offers:
        with faults.noted(), told_to_user(f"views of {data.name}: "):
            random_views(experiment.views, data.view_size)
    with faults.noted():
        _check_local_crops(experiment, data)
    with faults.noted():
        if experiment.validation.split not in data.splits:
            given = f"given {experiment.validation.split}; allowed: {', '.join(data.splits)}"
            raise InputError(f"validation.split of {data.name}: {given}")
    with faults.noted():
        if experiment.probes.images == "uncut" and not data.cut:
            why = "no classes are cut to unequal sizes (imbalance=, without images=)"
            raise InputError(f"probes.images of {data.name}: given uncut; allowed: training, because {why}")
    with faults.noted():
        if experiment.probes.kmeans_starts and not data.probed:
            own = f"{data.name} has " + ("objects with views of its own" if data.has_labels else "no labels")
            raise InputError(f"probes.kmeans_starts is for images; {own}")
    with faults.noted():
        if experiment.probes.label_free_views and "images" not in data.offers:
            own = f"{data.name} has objects with views of its own"
            raise InputError(f"probes.label_free_views, for metrics that need no label, is for images; {own}")
    with faults.noted():
        check_added_metrics(experiment.probes.metrics, data)
    with faults.noted(), told_to_user("validation.fraction "):
        data.check_validation(experiment.validation.fraction)
    faults.tell()


def check_size_of_data(experiment: Experiment, data_root: Path | None = None) -> None:
    """Raise InputError if the hyperparameters are not possible with the data that a run trains on.

    There may be too few images, or too few columns of the condition. It is no part of `check_experiment`: a
    space may allow more clusters than a dataset has images, and its search then leaves those out.
    """
    data, method = spec_for(experiment, data_root), METHODS[experiment.method]
    images = data.trained_size(experiment.validation.fraction)
    with told_to_user(f"{experiment.method} on {experiment.dataset}: "):
        if images is not None:
            method.fits(experiment.hyperparameters, images)
        if data.condition_dim is not None:
            method.check_columns(experiment.hyperparameters, data.condition_dim)


def experiment_with(
    base: Experiment, space: Space, values: Mapping[str, Any], data_root: Path | None = None
) -> Experiment:
    """Return the complete experiment with the `values` of a configuration of a space, all active ones.

    Raises:
        InputError: a value is not allowed, or the settings do not fit together or to the dataset's size.
    """
    experiment = base.with_searched(space.names, values)
    check_experiment(experiment, data_root)
    check_size_of_data(experiment, data_root)
    return experiment


def is_possible(
    base: Experiment, space: Space, values: Mapping[str, Any], data_root: Path | None = None
) -> bool:
    """Return whether the `values` of a configuration, all active ones, give an experiment."""
    try:
        experiment_with(base, space, values, data_root)
    except InputError:
        return False
    return True


def _check_local_crops(experiment: Experiment, data: DatasetFacts) -> None:
    """Raise InputError if there are local crops that the encoder does not take."""
    settings = experiment.views
    if not settings.local_crops:
        return
    with told_to_user(f"local crops of {data.name}: "):
        crops = local_views(settings, data.view_size)
        if crops is not None and crops.size != data.view_size:
            check_two_sizes(experiment.encoder.name, data.channels, data.view_size, crops.size)


def _note_encoder(settings: EncoderSettings, data: DatasetFacts, faults: Faults) -> None:
    """Note what of the encoder does not fit the data."""
    with faults.noted():
        _check_network(settings.name, data)
        check_weights(settings, data)
    with faults.noted():
        _check_normalisation(settings, data)


def _check_network(name: str, data: DatasetFacts) -> None:
    if data.has_images == (name in VECTOR_ENCODERS):
        kind, fitting = ("images", ENCODERS) if data.has_images else ("vectors", VECTOR_ENCODERS)
        raise InputError(
            f"encoder {name!r} does not take the {kind} of {data.name}; these do: {', '.join(fitting)}"
        )
    if data.has_images:
        with told_to_user(after=f" ({data.name})"):
            check_images(name, data.channels, data.view_size)


def _check_normalisation(settings: EncoderSettings, data: DatasetFacts) -> None:
    numbers = len(settings.mean)
    if "images" not in data.offers and (numbers or settings.views == "apart"):
        given = "encoder.mean and encoder.std are" if numbers else "encoder.views apart is"
        raise InputError(f"{given} for images; {data.name} has views of its own")
    if numbers not in (0, 1, data.channels):
        raise InputError(
            f"encoder.mean and encoder.std: given {numbers} numbers each; "
            f"allowed: one, or one for each channel of {data.name} ({data.channels})"
        )
