"""A dataset made ready for training: resident on the device, split, and shared by the runs that use it.

Transductive runs train on few labelled objects of several views and on the unlabelled test set.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from contrasweep.data import (
    DatasetFacts,
    DatasetSpec,
    Images,
    LabelledImages,
    MultiView,
    TransductiveData,
    TransductiveSpec,
    dataset_spec,
    image_chunks,
    load_training,
    load_transductive,
    load_uncut,
    numpy_generator,
    resized_to,
    shard_lengths,
    torch_generator,
    whole_image,
)
from contrasweep.data.splits import halved_rows
from contrasweep.models import Encoder
from contrasweep.tuning.errors import InputError, told_to_user
from contrasweep.tuning.experiment import EncoderSettings, Experiment, ValidationSettings
from contrasweep.tuning.objectives.encoders import build_encoder_for
from contrasweep.tuning.objectives.ranks import ONE, Ranks

CHUNK = 1024
"""Images that go through a network at once: bounds memory, does not change the result."""

OBJECTS_AT_ONCE = 4096
"""Objects that are classified at once: bounds memory, does not change the result."""


class Prepared(Protocol):
    """What a run trains on, whatever the kind of dataset. Held-out data is of the kind's own type."""

    @property
    def spec(self) -> DatasetFacts:
        """The facts of the dataset, with the size of view of the run."""

    @property
    def device(self) -> torch.device:
        """Where the data is."""

    @property
    def untrained(self) -> dict[str, dict[str, float]]:
        """The scores of untrained encoders on this data, by what they depend on; runs share and fill it."""

    @property
    def ranks(self) -> Ranks:
        """The ranks that embed and cluster this data together; `ONE` outside of a run of several."""

    def shared(self, ranks: Ranks) -> "Prepared":
        """Return the same data for one of several ranks of a run: all ranks must make and use it together."""

    @property
    def validation(self) -> Any:
        """The data that a search is scored on; None where none is held out."""

    @property
    def report(self) -> Any:
        """The half of the validation split that no choice depends on; None where it is not halved."""

    @property
    def probe_rows(self) -> LabelledImages | None:
        """The images that the fast probe learns from; None where no probe is fitted."""

    @property
    def probed(self) -> LabelledImages | None:
        """The images that the other probes learn from; None where no probe is fitted."""

    def inputs(self, held_out: Any) -> Iterator[Any]:
        """Yield all of the held-out data in the form that a network takes, a part at a time."""

    def test_data(self, loaded: Any) -> Any:
        """Return the test data as the final run loaded it, in the form of held-out data on the device."""

    def build_encoder(self, settings: EncoderSettings) -> Encoder:
        """Return a new encoder for this data; raise ValueError where it does not take such data."""


@dataclass(frozen=True)
class PreparedData:
    """Labelled images on a device.

    Attributes:
        spec: the facts of the dataset.
        train: the images that the method trains on.
        validation: the images held out of them; with `report`, half of these.
        probed: the images from which probes learn: the training images that have a label (in most datasets
            all), or with `probes.images` uncut also those that are left out of the training. None where no
            image has a label.
        probe_rows: the part of them that the fast probe learns from, or None.
        device: where all of them are.
        untrained: the scores of untrained encoders. They depend on the encoder, the seed and the probe alone,
            so the trials of a sweep share them.
        ranks, report: see `Prepared`.
    """

    spec: DatasetSpec
    train: LabelledImages
    validation: LabelledImages | None
    probed: LabelledImages | None
    probe_rows: LabelledImages | None
    device: torch.device
    untrained: dict[str, dict[str, float]] = field(default_factory=dict)
    ranks: Ranks = ONE
    report: LabelledImages | None = None

    def shared(self, ranks: Ranks) -> "PreparedData":
        """Return the same data for one of several ranks."""
        return replace(self, ranks=ranks)

    def inputs(self, held_out: LabelledImages) -> Iterator[Tensor]:
        """Yield whole images as floats `(B, C, S, S)`."""
        return image_inputs(held_out.images, self.spec.view_size)

    def test_data(self, loaded: LabelledImages) -> LabelledImages:
        """Return the test images on the device."""
        return loaded.to(self.device)

    def build_encoder(self, settings: EncoderSettings) -> Encoder:
        """Return a new encoder of images, with the weights of its file if it starts from one.

        Raises:
            ValueError: it does not take images of this size, or the file does not fit it.
            InputError: the file is not the one that the experiment began with.
        """
        return build_encoder_for(self.spec, settings)


def image_inputs(images: Images, size: int, centre: float = 1.0) -> Iterator[Tensor]:
    """Yield whole `images` (uint8 `(N, C, H, W)`) at `size` pixels as floats `(B, C, size, size)`.

    `centre` is the share of their sides that is kept, see `data.whole_image`.
    """
    return (whole_image(chunk, size, centre=centre) for chunk in image_chunks(images, CHUNK))


@dataclass(frozen=True)
class PreparedTransductive:
    """One fold of a transductive dataset on a device, without probes; the rest is as in `PreparedData`."""

    spec: TransductiveSpec
    data: TransductiveData
    device: torch.device
    untrained: dict[str, dict[str, float]] = field(default_factory=dict)
    probe_rows: None = None
    probed: None = None
    ranks: Ranks = ONE
    report: MultiView | None = None

    def shared(self, ranks: Ranks) -> "PreparedTransductive":
        """Return the same data for one of several ranks."""
        return replace(self, ranks=ranks)

    @property
    def validation(self) -> MultiView | None:
        """The labelled objects that are held out."""
        return self.data.validation

    def inputs(self, held_out: MultiView) -> Iterator[tuple[Tensor, ...]]:
        """Yield the views of the objects, one tensor `(B, ...)` for each view."""
        return zip(*(torch.split(view, OBJECTS_AT_ONCE) for view in held_out.views), strict=True)

    def test_data(self, loaded: Tensor) -> MultiView:
        """Return the test objects with their labels."""
        # The test objects come first among the unlabelled ones, in the order of their labels.
        views = tuple(view[: len(loaded)] for view in self.data.unlabelled.views)
        return MultiView(views, loaded.to(self.device))

    def build_encoder(self, settings: EncoderSettings) -> Encoder:
        """Return a new encoder for each view; raise ValueError where one does not take the view."""
        return build_encoder_for(self.spec, settings)


@dataclass(frozen=True)
class TransductiveBatch:
    """One step's data: `labelled` objects with their labels, and `unlabelled` ones.

    In a batch of one of several ranks, `labels` are those of the labelled objects of all ranks, and `others`
    is the number of unlabelled objects of all ranks.
    """

    labelled: MultiView
    unlabelled: MultiView
    labels: Tensor | None = None
    others: int | None = None

    def gathered_labels(self, gather: Callable[[Tensor, int], Tensor]) -> Tensor:
        """Return the labels of the labelled objects of all ranks."""
        if self.labels is not None:
            return self.labels
        assert self.labelled.labels is not None, "labelled objects have labels"
        return gather(self.labelled.labels, 0)

    def lengths(self, world: int) -> tuple[tuple[int, ...], ...]:
        """Return how many labelled, unlabelled, and objects of both kinds each rank has, if that is known."""
        if self.labels is None or self.others is None:
            return ()
        both = [shard_lengths(count, world) for count in (len(self.labels), self.others)]
        return (*both, tuple(map(sum, zip(*both, strict=True))))


def prepare_transductive(
    experiment: Experiment, spec: TransductiveSpec, data_root: Path | None, device: torch.device
) -> PreparedTransductive:
    """Load the fold that belongs to the experiment, with its validation part held out.

    Raises:
        ValueError: see `data.load_transductive`: the files are not in place, for example.
    """
    fold, part = fold_and_part(experiment, spec)
    share = experiment.validation.fraction
    loaded = load_transductive(experiment.dataset, data_root, fold, share, part)
    held_out = None if loaded.validation is None else loaded.validation.to(device)
    validation, report = _halved(held_out, experiment)
    here = replace(
        loaded,
        labelled=loaded.labelled.to(device),
        unlabelled=loaded.unlabelled.to(device),
        validation=validation,
    )
    return PreparedTransductive(spec, here, device, report=report)


HeldOut = TypeVar("HeldOut", LabelledImages, MultiView)


def _halved(held_out: HeldOut | None, experiment: Experiment) -> tuple[HeldOut | None, HeldOut | None]:
    """Return the part of held-out data that a search selects by, and with `validation.halves` the other."""
    settings = experiment.validation
    if held_out is None or not settings.halves:
        return held_out, None
    assert held_out.labels is not None, "held-out objects have labels"
    bias = held_out.bias if isinstance(held_out, LabelledImages) else None
    generator = torch_generator("validation halves", settings.seed)
    with told_to_user("validation.halves: "):
        select, report = halved_rows(held_out.labels, bias, generator)
    return held_out.subset(select), held_out.subset(report)


def fold_and_part(experiment: Experiment, spec: DatasetFacts) -> tuple[int, int]:
    """Return the fold of labelled objects of a run, and which part of them it holds out.

    Seeds take the folds in turn, so each has its own while there are folds. With `validation.split` folds
    they take the parts of one fold in turn: the seeds of a trial hold each labelled object out once.
    """
    held_out = experiment.validation
    if held_out.fraction and held_out.split == "folds":
        return held_out.seed % spec.folds, experiment.seed
    return experiment.seed % spec.folds, held_out.seed


def prepare_data(experiment: Experiment, data_root: Path | None, device: torch.device) -> Prepared:
    """Load the experiment's dataset, cut its validation split, and move both to `device`.

    Raises:
        ValueError: see `data.load_training`: the files are not in place, for example.
        InputError: see `refuse_other_data`.
    """
    spec = spec_for(experiment, data_root)
    refuse_other_data(experiment, spec)
    if isinstance(spec, TransductiveSpec):
        return prepare_transductive(experiment, spec, data_root, device)
    return _prepare_images(experiment, spec, data_root, device)


def versions_of(spec: DatasetFacts) -> dict[str, Any]:
    """Return the settings of an experiment that say which images a dataset's name stands for."""
    return {"data_revision": spec.revision, "data_fingerprint": spec.fingerprint}


def refuse_other_data(experiment: Experiment, spec: DatasetFacts) -> None:
    """Raise InputError unless the experiment is about the images that its dataset's name stands for now.

    An experiment without a fingerprint is older than that of its dataset: its images are not known.
    """
    if experiment.data_revision != spec.revision:
        raise InputError(
            f"data_revision of {spec.name}: given {experiment.data_revision}; allowed: {spec.revision}, "
            "because its images are made in another way now: search or train again"
        )
    if experiment.data_fingerprint not in ("", spec.fingerprint):
        raise InputError(
            f"data_fingerprint of {spec.name}: given {experiment.data_fingerprint}; here it is "
            f"{spec.fingerprint or 'none'}, because the images, the labels or a file of its options have "
            "changed: get those back (of the hub, give their commit as revision=), or search or train again"
        )


def _prepare_images(
    experiment: Experiment, spec: DatasetSpec, data_root: Path | None, device: torch.device
) -> PreparedData:
    cut = cut_of(experiment.validation)
    loaded = load_training(experiment.dataset, data_root, **cut, device=device)
    train = loaded.train
    validation, report = _halved(loaded.validation, experiment)
    if not spec.has_labels:
        return PreparedData(spec, train, validation, None, None, device, report=report)
    if experiment.probes.images == "uncut":
        labelled = load_uncut(experiment.dataset, data_root, **cut, device=device)
    else:
        labelled = train.labelled()
    order = numpy_generator("probe-rows", experiment.dataset).permutation(len(labelled))
    rows = torch.from_numpy(order[: experiment.probes.epoch_rows]).to(device)
    return PreparedData(spec, train, validation, labelled, labelled.subset(rows), device, report=report)


def cut_of(held_out: ValidationSettings) -> dict[str, Any]:
    """Return how a validation split is cut, as `data.load_training` and `data.load_uncut` take it."""
    assert held_out.split != "folds", "checked when the experiment was resolved"
    return {
        "validation_fraction": held_out.fraction,
        "split_seed": held_out.seed,
        "split": held_out.split,
    }


def spec_for(experiment: Experiment, data_root: Path | None = None) -> DatasetSpec | TransductiveSpec:
    """Return the facts of the experiment's dataset, with the size of view that the experiment asks for."""
    return dataset_spec(experiment.dataset, data_root).at_view_size(experiment.views.size)


def stored_size(experiment: Experiment, data_root: Path | None = None) -> int | None:
    """Return the pixels a side that the images of an experiment had before they were resized to its views.

    Images that are to look like them get this size first: resized once, they would have other pixels. None
    where it is not known, because the dataset is not.
    """
    # The files of the dataset may be absent here, and so may a plug-in that adds it.
    with suppress(ValueError):
        if stored := resized_to(experiment.dataset):
            return stored
        spec = dataset_spec(experiment.dataset, data_root)
        if isinstance(spec, DatasetSpec):
            return spec.image_size
    return None


def preparation_key(experiment: Experiment, data_root: Path | None = None) -> str:
    """Return a string that is equal for experiments for which `prepare_data` gives the same data."""
    held_out = experiment.validation.model_dump_json()
    size = experiment.views.size
    fold, part = fold_and_part(experiment, spec_for(experiment, data_root))
    probes = f"{experiment.probes.images} {experiment.probes.epoch_rows}"
    return f"{experiment.dataset} {fold} {part} {size} {held_out} {probes} {data_root}"
