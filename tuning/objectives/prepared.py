"""A dataset made ready for training: resident on the device, split, and shared by the runs that use it."""

from dataclasses import dataclass, field
from pathlib import Path

import torch

from contrasweep.data import (
    DatasetSpec,
    LabelledImages,
    TransductiveSpec,
    dataset_spec,
    load_training,
    numpy_generator,
)
from contrasweep.models import Encoder, build_encoder
from contrasweep.models.encoders.multiview import build_multiview_encoder
from contrasweep.tuning.experiment import EncoderSettings, Experiment
from contrasweep.tuning.objectives.transductive import PreparedTransductive, fold_of, prepare_transductive


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
    spec = spec_for(experiment, data_root)
    if isinstance(spec, TransductiveSpec):
        return prepare_transductive(experiment, spec, data_root, device)
    return _prepare_images(experiment, spec, data_root, device)


def _prepare_images(
    experiment: Experiment, spec: DatasetSpec, data_root: Path | None, device: torch.device
) -> PreparedData:
    split = experiment.validation
    loaded = load_training(experiment.dataset, data_root, split.fraction, split.seed)
    train = loaded.train.to(device)
    labelled = train.labelled()
    order = numpy_generator("probe-rows", experiment.dataset).permutation(len(labelled))
    rows = torch.from_numpy(order[: experiment.probes.epoch_rows]).to(device)
    validation = None if loaded.validation is None else loaded.validation.to(device)
    return PreparedData(spec, train, validation, labelled, labelled.subset(rows), device)


def spec_for(experiment: Experiment, data_root: Path | None = None) -> DatasetSpec | TransductiveSpec:
    """Return the facts of the experiment's dataset, with the size of view that the experiment asks for."""
    return dataset_spec(experiment.dataset, data_root).at_view_size(experiment.views.size)


def build_backbone(settings: EncoderSettings, data: Prepared) -> Encoder:
    """Return a new encoder for the data: of images, or one for each view of an object.

    Raises:
        ValueError: the name is unknown, or the encoder does not take such data.
    """
    if isinstance(data, PreparedTransductive):
        return build_multiview_encoder(settings.name, data.spec.views)
    return build_encoder(settings.name, data.spec.channels, data.spec.view_size, settings.mean, settings.std)


def preparation_key(experiment: Experiment, data_root: Path | None = None) -> str:
    """Return what `prepare_data` depends on, as a string: equal keys mean that the data can be shared."""
    split = experiment.validation
    size = experiment.views.size
    fold = fold_of(experiment, spec_for(experiment, data_root))
    rows = experiment.probes.epoch_rows
    return f"{experiment.dataset} {fold} {size} {split.fraction} {split.seed} {rows} {data_root}"
