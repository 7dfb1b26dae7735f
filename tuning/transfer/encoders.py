"""Encoders read from files: trained, as they were before training, and fitted to images of other channels.

Shapes: B images, C channels, S pixels a side, D features.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from contrasweep.data import luma_of
from contrasweep.models import Encoder, EncoderFile, ImageInput, read_encoder
from contrasweep.tuning.errors import InputError, told_to_user
from contrasweep.tuning.experiment import Experiment, experiment_in_file
from contrasweep.tuning.objectives.encoders import starting_from_file
from contrasweep.tuning.objectives.objective import Gather, Objective
from contrasweep.tuning.objectives.prepared import image_inputs
from contrasweep.tuning.store.layout import snapshot_epoch
from contrasweep.tuning.training.compute import compile_backbones, computing
from contrasweep.tuning.training.pretrain import initial_encoder
from contrasweep.tuning.transfer.images import ImageSet
from contrasweep.tuning.transfer.sources import EncoderSource


@dataclass(frozen=True, eq=False)
class GivenEncoder:
    """An encoder of single images, read from a file.

    Attributes:
        name: what tables call it; encoders that differ in their seed alone have the same name.
        place: where the file is.
        file: its content.
        experiment: the one that trained it; where the file does not say, the defaults, which name no method.
    """

    name: str
    place: str
    file: EncoderFile
    experiment: Experiment

    @property
    def takes(self) -> ImageInput:
        """The images that it takes."""
        takes = self.file.encoder.takes
        assert isinstance(takes, ImageInput), "checked by read_encoders"
        return takes

    @property
    def seed(self) -> int:
        """The seed of its run, from which the untrained encoder follows."""
        return self.experiment.seed

    def network(self, channels: int, *, trained: bool) -> Encoder:
        """Return a new copy of the network that takes images of so many `channels`.

        Without training, it has the weights that its run began with.

        Raises:
            InputError: there is no such conversion of images, or the file that the run began with is gone.
        """
        with told_to_user(f"{self.place}, before training: "):
            network = self.file.network(trained=True) if trained else initial_encoder(self.seed, self._start)
        return of_channels(network, self.takes.channels, channels)

    def _start(self) -> Encoder:
        return starting_from_file(self.file.network(trained=False), self.experiment.encoder)

    def frozen(self, channels: int, device: torch.device | str, *, trained: bool = True) -> "FrozenEncoder":
        """Return the network for features alone, on a device, computed as its run computed them."""
        objective = FrozenEncoder(self.network(channels, trained=trained)).to(device)
        compile_backbones(objective, self.experiment.compute)
        return objective


class FrozenEncoder(Objective):
    """An encoder that gives features as in training, and learns nothing."""

    def compute(self, batch: Any, gather: Gather) -> NoReturn:
        """Refuse to train.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("a frozen encoder has no loss")


def read_encoders(sources: Sequence[EncoderSource]) -> list[GivenEncoder]:
    """Read encoder files; encoders of one experiment with different seeds get the same name.

    Snapshots have names of their own: they are the same only as those after as many epochs. A run's last
    snapshot is left out beside its encoder, which it equals.

    Raises:
        InputError: a file is no encoder that contrasweep wrote, takes several views of an object, or is given
            twice.
    """
    given = [(source, *_read(source)) for source in sources]
    whole = {file.digest for source, file, _ in given if snapshot_epoch(source.place) is None}
    read = [one for one in given if snapshot_epoch(one[0].place) is None or one[1].digest not in whole]
    digests = [file.digest for _, file, _ in read]
    for source, file, _ in read:
        if digests.count(file.digest) > 1:
            raise InputError(f"the encoder {source.place} is given twice")
    names: dict[str, str] = {}
    found: list[GivenEncoder] = []
    for source, file, experiment in read:
        config = f"{experiment.identity()} {snapshot_epoch(source.place)}" if file.experiment else file.digest
        if (names.get(config), experiment.seed) in {(one.name, one.seed) for one in found}:
            # Two files of one run, such as a snapshot that was renamed, are no two seeds.
            config = file.digest
        if config not in names:
            names[config] = _new_name(source, file, experiment, list(names.values()))
        found.append(GivenEncoder(names[config], source.place, file, experiment))
    return found


def given_encoder(file: EncoderFile, place: str) -> GivenEncoder:
    """Return the encoder of a file that was read from `place`.

    Raises:
        InputError: it takes several views of an object, or the experiment in it cannot be read.
    """
    return GivenEncoder(place, place, file, _experiment_in(file, place))


def encoded_parts(
    encoder: GivenEncoder, images: ImageSet, device: torch.device, *, trained: bool = True
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield images as the network sees them, `(B, C, S, S)` in 0..1, and their features `(B, D)`.

    Raises:
        InputError: a feature is NaN or Inf.
    """
    takes, centre = encoder.takes, encoder.experiment.probes.centre
    frozen = encoder.frozen(images.images.shape[1], device, trained=trained)
    for inputs in image_inputs(images.images.to(device), takes.size, centre):
        with computing(encoder.experiment.compute, device):
            features = frozen.features(inputs)
        if not bool(features.isfinite().all()):
            raise InputError(f"{encoder.place}: its features hold NaN or Inf, so it has diverged")
        yield inputs, features


def of_channels(encoder: Encoder, takes: int, channels: int) -> Encoder:
    """Return the encoder for images of other channels than it takes, `encoder` itself if they are the same.

    A grey image is repeated in every channel; a colour image is turned to grey (luma).

    Raises:
        InputError: there is no such conversion.
    """
    if channels == takes:
        return encoder
    if {channels, takes} != {1, 3}:
        raise InputError(f"the encoder takes {takes} channels; images of {channels} cannot be converted")
    converted: nn.Module = _Repeat(takes) if channels == 1 else _Grey()
    fitted = Encoder(nn.Sequential(converted, encoder.body), encoder.width)
    fitted.trains_in_bf16 = encoder.trains_in_bf16
    return fitted


class _Repeat(nn.Module):
    """`(B, 1, S, S)` to `(B, C, S, S)`."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels

    def forward(self, images: Tensor) -> Tensor:
        return images.expand(-1, self.channels, -1, -1).contiguous(memory_format=torch.channels_last)


class _Grey(nn.Module):
    """`(B, 3, S, S)` to `(B, 1, S, S)`."""

    def forward(self, images: Tensor) -> Tensor:
        return luma_of(images)


def _read(source: EncoderSource) -> tuple[EncoderFile, Experiment]:
    with told_to_user():
        file = read_encoder(source.read(), source.place)
    return file, _experiment_in(file, source.place)


def _experiment_in(file: EncoderFile, place: str) -> Experiment:
    """Return the experiment that trained a file's encoder of single images; the defaults if it has none."""
    if not isinstance(file.encoder.takes, ImageInput):
        raise InputError(f"{place} encodes several views of an object; allowed: an encoder of single images")
    return experiment_in_file(file.experiment, place) or Experiment(method="", dataset="")


def _new_name(source: EncoderSource, file: EncoderFile, experiment: Experiment, taken: Sequence[str]) -> str:
    """Return a name for an encoder that is not among those that are `taken`."""
    trained = f"{experiment.method} on {experiment.dataset}" if file.experiment else source.place
    epoch = snapshot_epoch(source.place)
    name = (source.label or trained) + ("" if epoch is None else f", after epoch {epoch}")
    return name if name not in taken else f"{name} ({len(taken) + 1})"
