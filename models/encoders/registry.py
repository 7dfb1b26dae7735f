"""The encoders that a user can choose by name: our own and those of plug-ins."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import torch

from contrasweep.libraries import of_library, unknown_encoder
from contrasweep.models.encoders import convnets, herocon
from contrasweep.models.encoders.bagnet import bagnet18
from contrasweep.models.encoders.encoder import Encoder, normalised_encoder
from contrasweep.models.encoders.libraries import check_model, feature_width, library_encoder
from contrasweep.models.encoders.meta_device import on_meta_device, outputs_of
from contrasweep.models.encoders.resnet import resnet
from contrasweep.names import unknown
from contrasweep.plugins import Registry


@dataclass(frozen=True)
class EncoderSpec:
    """An encoder of images that a user can choose.

    Attributes:
        name: what users type.
        summary: a short description.
        image_size: the only image size it takes, in pixels per side; None: any from `smallest_image` on.
        build: returns the encoder for `(channels, image_size)`.
        smallest_image: the smallest image it takes, in pixels per side.
        any_size: whether it is known that one network takes images of all these sizes, because it averages
            over places at the end; of the others it is tried.
    """

    name: str
    summary: str
    image_size: int | None
    build: Callable[[int, int], Encoder]
    smallest_image: int = 1
    any_size: bool = False

    def check_image_size(self, image_size: int) -> None:
        """Raise ValueError unless the encoder takes images of `image_size` pixels per side."""
        takes, given = f"encoder {self.name!r} takes", f"{image_size} x {image_size}"
        if self.image_size not in (None, image_size):
            raise ValueError(f"{takes} {self.image_size} x {self.image_size} images, not {given}")
        if image_size < self.smallest_image:
            smallest = f"{self.smallest_image} x {self.smallest_image}"
            raise ValueError(f"{takes} images from {smallest} on, not {given}")


@dataclass(frozen=True)
class VectorEncoderSpec:
    """An encoder of vectors that a user can choose: name, summary, and a builder for their width."""

    name: str
    summary: str
    build: Callable[[int], Encoder]


_OWN: tuple[EncoderSpec | VectorEncoderSpec, ...] = (
    EncoderSpec("lenet5", "LeNet-5, 84 features after a tanh, 32 x 32 images", 32, convnets.lenet5),
    EncoderSpec("lenet5-linear", "LeNet-5, 84 linear features, 32 x 32 images", 32, convnets.lenet5_linear),
    EncoderSpec(
        "small-conv", "three 3 x 3 convolutions, 64 features, any size", None, convnets.small_conv, 2
    ),
    EncoderSpec(
        "simple-conv",
        "SimpleConvNet, four 7 x 7 convolutions, 128 features after a tanh",
        None,
        convnets.simple_conv,
    ),
    EncoderSpec(
        "simple-conv-relu", "simple-conv, 128 features after a ReLU", None, convnets.simple_conv_relu
    ),
    EncoderSpec(
        "simple-conv-1x1",
        "simple-conv-relu with 1 x 1 convolutions, sees single pixels, 128 features",
        None,
        convnets.simple_conv_1x1,
    ),
    EncoderSpec(
        "small-alexnet",
        "AlexNet in 3 x 3 convolutions, 4,096 features, for 32 to 64 pixels",
        None,
        convnets.small_alexnet,
        15,
    ),
    EncoderSpec(
        "resnet18",
        "ResNet-18 with the ImageNet stem, 512 features",
        None,
        partial(resnet, 18, "imagenet"),
        any_size=True,
    ),
    EncoderSpec(
        "resnet50",
        "ResNet-50 with the ImageNet stem, 2,048 features",
        None,
        partial(resnet, 50, "imagenet"),
        any_size=True,
    ),
    EncoderSpec(
        "resnet18-cifar",
        "ResNet-18 with the CIFAR stem, 512 features, for 32 to 64 pixels",
        None,
        partial(resnet, 18, "cifar"),
        any_size=True,
    ),
    EncoderSpec(
        "resnet50-cifar",
        "ResNet-50 with the CIFAR stem, 2,048 features, for 32 to 64 pixels",
        None,
        partial(resnet, 50, "cifar"),
        any_size=True,
    ),
    EncoderSpec(
        "herocon-cnn",
        "HeroCon's network for N-MNIST, two convolutions and a layer, 512 features",
        None,
        herocon.herocon_cnn,
        4,
    ),
    EncoderSpec(
        "herocon-vgg", "HeroCon's narrow VGG-16 for CelebA, 512 features", None, herocon.herocon_vgg, 32
    ),
    EncoderSpec("bagnet18", "BagNet-18, sees patches of 5 x 5 pixels, 512 features", None, bagnet18, 5),
    VectorEncoderSpec("herocon-mlp", "HeroCon's two layers of 200 for vectors", herocon.herocon_mlp),
)

ENCODER_REGISTRY: Registry[EncoderSpec | VectorEncoderSpec] = Registry(
    "encoder", lambda: _OWN, (EncoderSpec, VectorEncoderSpec)
)

ENCODERS: Mapping[str, EncoderSpec] = ENCODER_REGISTRY.of_type(EncoderSpec)
"""The encoders of images."""

VECTOR_ENCODERS: Mapping[str, VectorEncoderSpec] = ENCODER_REGISTRY.of_type(VectorEncoderSpec)
"""The encoders of vectors."""


class UnknownEncoder(ValueError):
    """There is no encoder of this name here."""


def encoder_spec(name: str) -> EncoderSpec:
    """Return the encoder of images `name`: one in `ENCODERS`, or `torchvision:MODEL` or `timm:MODEL`.

    Raises:
        LibraryMissing: the library is not installed.
        UnknownEncoder: the name is unknown; the message has the nearest.
    """
    if of_library(name):
        check_model(name)
        return EncoderSpec(name, "a network of a library", None, partial(library_encoder, name))
    if name not in ENCODERS:
        raise UnknownEncoder(unknown_encoder(name, ENCODERS))
    return ENCODERS[name]


def check_images(name: str, channels: int, image_size: int) -> None:
    """Raise ValueError unless the encoder takes images `(channels, image_size, image_size)`.

    The network of a library or a plug-in is built and run without memory for its numbers. That of a plug-in
    must give the features that it states.
    """
    spec = encoder_spec(name)
    spec.check_image_size(image_size)
    if of_library(name):
        feature_width(name, channels, image_size)
    elif spec not in _OWN:
        _check_features(spec, channels, image_size)


@lru_cache(maxsize=16)
def _check_features(spec: EncoderSpec, channels: int, image_size: int) -> None:
    images = f"{channels} x {image_size} x {image_size} images"
    network = on_meta_device(lambda: spec.build(channels, image_size))
    if not isinstance(network, Encoder):
        raise ValueError(  # noqa: TRY004 - the message is for the author of a plug-in
            f"encoder {spec.name!r}: its function must return an Encoder(body, width=...), "
            f"returned {type(network).__name__}"
        )
    try:
        features = outputs_of(network, channels, image_size)
    except ValueError as error:
        if "meta" in str(error):  # It reads numbers, so it says nothing without them.
            return
        raise ValueError(f"encoder {spec.name!r} does not take {images}: {error}") from error
    if features.dtype != torch.float32:
        raise ValueError(f"encoder {spec.name!r} gives features of {features.dtype}; allowed: torch.float32")
    if features.shape != (1, network.width):
        raise ValueError(
            f"encoder {spec.name!r} states {network.width} features, but of {images} it gives "
            f"{tuple(features.shape[1:])} each; allowed: one row of `width` numbers for each image"
        )


def build_encoder(
    name: str, channels: int, image_size: int, mean: Sequence[float] = (), std: Sequence[float] = ()
) -> Encoder:
    """Build the encoder `name` for images `(channels, image_size, image_size)` in 0..1.

    It is a name in `ENCODERS`, or `torchvision:MODEL` or `timm:MODEL` (see `encoders.libraries`). With `mean`
    and `std` the encoder normalises the images first, see `normalised_encoder`.

    Raises:
        ValueError: the name is unknown, the encoder does not take images of that size, or `mean` and `std` do
            not fit the channels.
    """
    spec = encoder_spec(name)
    spec.check_image_size(image_size)
    return normalised_encoder(spec.build(channels, image_size), channels, mean, std)


def check_two_sizes(name: str, channels: int, image_size: int, other_size: int) -> None:
    """Raise ValueError unless the encoder built for images of one size takes those of another too.

    Where that is not known, the network is built and run without memory for its numbers (on torch's meta
    device).
    """
    spec = encoder_spec(name)
    sizes = f"{image_size} x {image_size} images and {other_size} x {other_size} ones"
    refusal = f"encoder {name!r} does not take {sizes} at once"
    try:
        spec.check_image_size(other_size)
        if spec.any_size:
            # Building a ResNet imports torchvision, which takes seconds.
            return
        outputs_of(on_meta_device(lambda: spec.build(channels, image_size)), channels, other_size)
    except (RuntimeError, ValueError) as error:
        raise ValueError(f"{refusal}: {error}") from error


def build_vector_encoder(name: str, width_in: int) -> Encoder:
    """Build the encoder `name` for vectors `(B, width_in)`.

    Raises:
        UnknownEncoder: the name is unknown.
        ValueError: `width_in` is below 1.
    """
    if name not in VECTOR_ENCODERS:
        raise UnknownEncoder(unknown("vector encoder", name, VECTOR_ENCODERS))
    if width_in < 1:
        raise ValueError(f"vectors must have at least one entry, got width_in = {width_in}")
    return VECTOR_ENCODERS[name].build(width_in)
