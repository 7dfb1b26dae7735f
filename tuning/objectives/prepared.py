"""A dataset made ready for training: resident on the device, split, and shared by the runs that use it."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from contrasweep.data import DatasetSpec, LabelledImages, dataset_spec, load_training, numpy_generator
from contrasweep.models import Encoder, build_encoder
from contrasweep.models.encoders.multiview import build_multiview_encoder
from contrasweep.tuning.experiment import EncoderSettings, Experiment
from contrasweep.tuning.objectives.datasets import Facts, facts_of, is_transductive
from contrasweep.tuning.objectives.transductive import PreparedTransductive, prepare_transductive


@dataclass(frozen=True)
class PreparedData:
    """The training images on a device, the validation images cut from them, and those that probes learn from.

    `labelled` are the training images that have a label, all of them in most datasets; `probe_rows` are some
    of these, for the fast probe.

    `untrained` keeps the scores of untrained encoders that were already computed on this data: they depend on
    the encoder, the seed and the probe alone, so the trials of a sweep share them.
    """

    spec: DatasetSpec
    train: LabelledImages
    validation: LabelledImages | None
    labelled: LabelledImages
    probe_rows: LabelledImages
    device: torch.device
    untrained: dict[str, dict[str, float]] = field(default_factory=dict)


Prepared = PreparedData | PreparedTransductive
"""What a run trains on."""


def prepare_data(experiment: Experiment, data_root: Path | None, device: torch.device) -> Prepared:
    """Load the experiment's dataset, cut its validation split, and move both to `device`.

    Raises:
        ValueError: see `data.load_training`; its files are not in place, say.
    """
    if is_transductive(experiment.dataset):
        return prepare_transductive(experiment, data_root, device)
    return prepare_images(experiment, data_root, device)


def prepare_images(experiment: Experiment, data_root: Path | None, device: torch.device) -> PreparedData:
    """Return the experiment's images, prepared; see `prepare_data`."""
    split = experiment.validation
    spec = _image_facts(experiment, data_root)
    loaded = load_training(experiment.dataset, data_root, split.fraction, split.seed)
    train = loaded.train.to(device)
    labelled = train.labelled()
    order = numpy_generator("probe-rows", experiment.dataset).permutation(len(labelled))
    rows = torch.from_numpy(order[: experiment.probes.epoch_rows]).to(device)
    validation = None if loaded.validation is None else loaded.validation.to(device)
    return PreparedData(spec, train, validation, labelled, labelled.subset(rows), device)


def facts_for(experiment: Experiment, data_root: Path | None = None) -> Facts:
    """Return the facts of the experiment's dataset, with the size of view that the experiment asks for."""
    if is_transductive(experiment.dataset):
        return facts_of(experiment.dataset)
    return _image_facts(experiment, data_root)


def _image_facts(experiment: Experiment, data_root: Path | None) -> DatasetSpec:
    spec = dataset_spec(experiment.dataset, data_root)
    return replace(spec, view_size=experiment.views.size or spec.view_size)


def build_backbone(settings: EncoderSettings, data: Prepared) -> Encoder:
    """Return a new encoder for the data: of images, or one for each view of an object.

    Raises:
        ValueError: the name is unknown, or the encoder does not take such data.
    """
    if isinstance(data, PreparedTransductive):
        return build_multiview_encoder(settings.name, data.spec.views)
    return build_encoder(settings.name, data.spec.channels, data.spec.view_size, settings.mean, settings.std)


def preparation_key(experiment: Experiment) -> str:
    """Return what `prepare_data` depends on, as a string: equal keys mean that the data can be shared."""
    split = experiment.validation
    size = experiment.views.size
    fold = experiment.seed if is_transductive(experiment.dataset) else ""
    return f"{experiment.dataset} {fold} {size} {split.fraction} {split.seed} {experiment.probes.epoch_rows}"
