"""A dataset made ready for training: resident on the device, split, and shared by the runs that use it."""

from dataclasses import dataclass, field
from pathlib import Path

import torch

from data import DatasetSpec, LabelledImages, dataset_spec, load_training, numpy_generator
from tuning.config import Experiment


@dataclass(frozen=True)
class PreparedData:
    """The training images on a device, the validation images cut from them, and rows for the fast probe.

    `untrained` keeps the scores of untrained encoders that were already computed on this data: they depend on
    the encoder, the seed and the probe alone, so the trials of a sweep share them.
    """

    spec: DatasetSpec
    train: LabelledImages
    validation: LabelledImages | None
    probe_rows: LabelledImages
    device: torch.device
    untrained: dict[str, dict[str, float]] = field(default_factory=dict)


def prepare_data(experiment: Experiment, data_root: Path | None, device: torch.device) -> PreparedData:
    """Load the experiment's dataset, cut its validation split, and move both to `device` as uint8.

    Raises:
        ValueError: see `data.load_training`; its files are not in place, say.
    """
    split = experiment.validation
    spec = dataset_spec(experiment.dataset, data_root)
    loaded = load_training(experiment.dataset, data_root, split.fraction, split.seed)
    train = loaded.train.to(device)
    order = numpy_generator("probe-rows", experiment.dataset).permutation(len(train))
    rows = torch.from_numpy(order[: experiment.probes.epoch_rows]).to(device)
    validation = None if loaded.validation is None else loaded.validation.to(device)
    return PreparedData(spec, train, validation, train.subset(rows), device)


def preparation_key(experiment: Experiment) -> str:
    """Return what `prepare_data` depends on, as a string: equal keys mean that the data can be shared."""
    split = experiment.validation
    return f"{experiment.dataset} {split.fraction} {split.seed} {experiment.probes.epoch_rows}"
