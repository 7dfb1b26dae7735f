"""Networks of torchvision and timm as encoders: the classifier is left out, the pooled feature stays.

They start from the library's random initialisation; weights are never downloaded. Dropout and stochastic
depth are off: a run's numbers do not depend on the number of workers, nor on an interruption, and torch's
random numbers for these layers would.
"""

import inspect
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import Any

from torch import nn

from contrasweep.libraries import library_and_model
from contrasweep.models.encoders.encoder import Encoder
from contrasweep.models.encoders.meta_device import on_meta_device, outputs_of
from contrasweep.names import did_you_mean

_SHARES = ("attention_dropout", "attn_drop", "drop_prob", "drop_rate", "dropout", "proj_drop")
"""Attributes of layers that hold a share of what is dropped in training."""


def library_encoder(name: str, channels: int, image_size: int) -> Encoder:
    """Build the network `name`, LIBRARY:MODEL, for images `(channels, image_size, image_size)`.

    Its parameters have the library's names, so that published weights load into `encoder.body`.

    Raises:
        LibraryMissing: the library is not installed.
        ValueError: there is no such model, or it does not give a pooled feature of such images.
    """
    width = feature_width(name, channels, image_size)
    return Encoder(_network(name, channels, image_size), width)


@cache
def feature_width(name: str, channels: int, image_size: int) -> int:
    """Return the number of features of a library's network; it is built and run without memory.

    Raises:
        ValueError: see `library_encoder`.
    """
    check_model(name)
    images = f"{channels} x {image_size} x {image_size} images"
    try:
        network = on_meta_device(lambda: _network(name, channels, image_size))
        _refuse_rests(network, image_size)
        features = outputs_of(network, channels, image_size)
    except (ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        mend = "another size of the images is set with views.size, as in --set views.size=32"
        raise ValueError(f"encoder {name!r} does not take {images}: {why}; {mend}") from error
    if features.ndim != 2:
        given = tuple(features.shape[1:])
        raise ValueError(f"encoder {name!r} has no pooled feature: of {images} it gives {given} each")
    return features.shape[1]


def _refuse_rests(network: nn.Module, image_size: int) -> None:
    """Raise ValueError if the image is not whole patches: a network of timm would ignore its last pixels."""
    # Some networks have a layer of this name that makes no patches, and states no size.
    named = [layer for layer in network.modules() if type(layer).__name__ == "PatchEmbed"]
    first = next((layer for layer in named if hasattr(layer, "patch_size")), None)
    if first is None or getattr(first, "dynamic_img_pad", False):
        return
    given: Any = first.patch_size
    size = int(given[0] if isinstance(given, tuple | list) else given)
    if image_size % size:
        raise ValueError(
            f"its patches have {size} pixels a side, so it would ignore the last {image_size % size}"
        )


@cache
def check_model(name: str) -> None:
    """Raise ValueError unless the library in `name` is installed and has the model; name the nearest one."""
    library, model = library_and_model(name)
    if library == "timm" and "." in model:
        plain, _, tag = model.partition(".")
        raise ValueError(
            f"encoder {name!r}: the tag {tag!r} names weights, which come with encoder.weights; "
            f"give timm:{plain}"
        )
    known = _models(library)
    if model not in known:
        listed = f"{library} {version(library)} has {len(known):,} models that classify images"
        hint = did_you_mean(model, known, prefix=f"{library}:")
        raise ValueError(f"unknown encoder {name!r}.{hint} {listed}.")


def _models(library: str) -> list[str]:
    if library == "timm":
        import timm

        return list(timm.list_models())
    from torchvision import models

    return list(models.list_models(module=models))


def _network(name: str, channels: int, image_size: int) -> nn.Module:
    library, model = library_and_model(name)
    build = _of_timm if library == "timm" else _of_torchvision
    return _without_draws(build(model, channels, image_size))


def _of_timm(model: str, channels: int, image_size: int) -> nn.Module:
    import timm

    options = timm_options(model, channels, image_size)
    if "dynamic_img_size" in _timm_parameters(model):
        # Local crops are smaller than the views. For images of `image_size`, it does not change a bit.
        options["dynamic_img_size"] = True
    network: nn.Module = timm.create_model(model, pretrained=False, num_classes=0, **options)
    return network


def timm_options(model: str, channels: int, image_size: int) -> dict[str, Any]:
    """Return the options with which timm makes a network for such images, beside `num_classes=0`."""
    # A network that takes it is built for one image size, as those with attention are.
    sized = "img_size" in _timm_parameters(model)
    return {"in_chans": channels, **({"img_size": image_size} if sized else {})}


@cache
def _timm_parameters(model: str) -> frozenset[str]:
    """Return the names of the options that the class of a network of timm takes."""
    import timm

    network = on_meta_device(lambda: timm.create_model(model, pretrained=False, num_classes=0))
    return frozenset(inspect.signature(type(network).__init__).parameters)


def _of_torchvision(model: str, channels: int, image_size: int) -> nn.Module:
    from torchvision.models import get_model

    network: nn.Module = get_model(
        model, weights=None, num_classes=1, **torchvision_options(model, image_size)
    )
    classifier, first = _classifier_and_first(network)
    network.set_submodule(classifier, nn.Identity())
    if channels != 3:
        network.set_submodule(first, _with_channels(network.get_submodule(first), channels))
    return network


def classifier_and_first(model: str, image_size: int) -> tuple[str, str]:
    """Return the names of the classifier, and of the first convolution, in a network of torchvision."""
    from torchvision.models import get_model

    options = torchvision_options(model, image_size)
    return _classifier_and_first(
        on_meta_device(lambda: get_model(model, weights=None, num_classes=1, **options))
    )


def _classifier_and_first(network: nn.Module) -> tuple[str, str]:
    # With one class, the classifier is the layer with one output.
    classifiers = [name for name, layer in network.named_modules() if _outputs(layer) == 1]
    first = next(name for name, layer in network.named_modules() if isinstance(layer, nn.Conv2d))
    return classifiers[-1], first


def torchvision_options(model: str, image_size: int) -> Mapping[str, Any]:
    """Return the options of a network of torchvision beside its weights and classes."""
    if model.startswith("vit_"):
        return {"image_size": image_size}
    if model.startswith("maxvit"):
        return {"input_size": (image_size, image_size)}
    if model in ("googlenet", "inception_v3"):
        return {"aux_logits": False, "init_weights": True}
    return {}


def _outputs(layer: nn.Module) -> int | None:
    if isinstance(layer, nn.Linear):
        return layer.out_features
    return layer.out_channels if isinstance(layer, nn.Conv2d) else None


def _with_channels(layer: nn.Module, channels: int) -> nn.Conv2d:
    """Return a first convolution like `layer` for another number of channels, as torch initialises it."""
    assert isinstance(layer, nn.Conv2d)
    return nn.Conv2d(
        channels,
        layer.out_channels,
        layer.kernel_size,  # type: ignore[arg-type]
        layer.stride,  # type: ignore[arg-type]
        layer.padding,  # type: ignore[arg-type]
        bias=layer.bias is not None,
    )


def _without_draws(network: nn.Module) -> nn.Module:
    """Return the network after all of its layers that drop something at random have been told not to."""
    for layer in network.modules():
        names = (
            (*_SHARES, "p") if type(layer).__name__.startswith(("Dropout", "StochasticDepth")) else _SHARES
        )
        for name in names:
            if isinstance(getattr(layer, name, None), float):
                setattr(layer, name, 0.0)
    return network
