"""An encoder file as other libraries see it: a bare network, and what its images must be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from contrasweep.models.encoders.encoder import Encoder
from contrasweep.models.encoders.inputs import ImageInput
from contrasweep.models.encoders.weights import network_of as without_normalisation
from contrasweep.models.export import EncoderFile

RESIZED = "bilinear, antialiased"
"""How images are resized, see `data.whole_image`."""

SQUARE = "the shorter side is resized and the centre square cut out"
"""What becomes of an image that is not square, see `data.fit_square`."""


class NotOffered(ValueError):
    """A format cannot hold a network, or a package that writes it is not installed."""


@dataclass(frozen=True)
class Network:
    """An encoder of images whose file was read.

    Attributes:
        name: the encoder, as users choose it.
        encoder: the encoder, which normalises images in 0..1 itself, in evaluation mode on the CPU.
        bare: the same network without the normalisation.
        channels: the channels of its images.
        size: their pixels per side.
        centre: the share of an image's sides that is kept: the central part of its centre square.
        mean: what is subtracted from images in 0..1, one number for each channel; zeros for nothing.
        std: what they are divided by then; ones for nothing.
    """

    name: str
    encoder: Encoder
    bare: nn.Module
    channels: int
    size: int
    centre: float
    mean: tuple[float, ...]
    std: tuple[float, ...]

    @property
    def weights(self) -> dict[str, Tensor]:
        """The bare network's parameters and buffers by name."""
        return self.bare.state_dict()

    @property
    def resized(self) -> int:
        """The pixels per side to which whole images are resized, before their centre is cut out."""
        return round(self.size / self.centre)

    @property
    def preprocessing(self) -> Mapping[str, object]:
        """What turns an 8-bit image into the bare network's input, for a JSON file."""
        return {
            "channels": self.channels,
            "size": self.size,
            "square": SQUARE,
            "centre": self.centre,
            "resize": RESIZED,
            "range": [0.0, 1.0],
            "mean": list(self.mean),
            "std": list(self.std),
        }


def network_of(file: EncoderFile, centre: float = 1.0) -> Network:
    """Return the network of an encoder file, which is for the `centre` of images: see `Network`.

    Raises:
        NotOffered: the encoder takes several views of an object, not images.
    """
    encoder, header = file.encoder, file.header
    if not isinstance(encoder.takes, ImageInput):
        raise NotOffered("it encodes several views of an object; no other library has such a network")
    channels = encoder.takes.channels
    return Network(
        name=header["name"],
        encoder=encoder,
        bare=without_normalisation(encoder),
        channels=channels,
        size=encoder.takes.size,
        centre=centre,
        mean=_by_channel(header["mean"] or (0.0,), channels),
        std=_by_channel(header["std"] or (1.0,), channels),
    )


def _by_channel(given: Sequence[float], channels: int) -> tuple[float, ...]:
    return tuple(given) * (channels // len(given))
