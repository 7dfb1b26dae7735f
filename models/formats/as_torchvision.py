"""Weights under torchvision's names, for `load_state_dict`."""

from torch import nn

from contrasweep.models.encoders.libraries import classifier_and_first, torchvision_options
from contrasweep.models.formats.network import Network, NotOffered
from contrasweep.models.formats.package import CONFIG, WEIGHTS, Format, Package, json_file, weights_file
from contrasweep.models.formats.resnets import CIFAR_STEM, IMAGENET_STEM

_EXAMPLE = """\
import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from torchvision.models import get_model

model = get_model("{model}", weights=None{options})
{changes}model.load_state_dict(load_file("{weights}"))
given = json.loads(Path("{config}").read_text())["preprocessing"]
mean, std = (torch.tensor(given[name]).view(1, -1, 1, 1) for name in ("mean", "std"))
with torch.no_grad():
    features = model.eval()((images - mean) / std)
"""


def _write(network: Network) -> Package:
    model = _model_of(network)
    content = {
        "library": "torchvision",
        "model": model,
        "num_features": network.encoder.width,
        "preprocessing": network.preprocessing,
    }
    options = torchvision_options(model, network.size)
    example = _EXAMPLE.format(
        model=model,
        options="".join(f", {name}={value!r}" for name, value in options.items()),
        changes="".join(f"{line}\n" for line in _changes(network, model)),
        weights=WEIGHTS,
        config=CONFIG,
    )
    return Package({WEIGHTS: weights_file(network.weights), CONFIG: json_file(content)}, example)


def _model_of(network: Network) -> str:
    """Return what torchvision calls a network.

    Raises:
        NotOffered: it has no such network.
    """
    library, _, model = network.name.partition(":")
    if library == "torchvision":
        return model
    depth = {**IMAGENET_STEM, **CIFAR_STEM}.get(network.name)
    if depth is None:
        raise NotOffered(
            f"torchvision has no network {network.name}; --format onnx takes every encoder of images"
        )
    return f"resnet{depth}"


def _changes(network: Network, model: str) -> list[str]:
    """Return the lines that make torchvision's network the exported one."""
    classifier, first = classifier_and_first(model, network.size)
    cifar = network.name in CIFAR_STEM
    lines = [f'model.set_submodule("{classifier}", torch.nn.Identity())']
    layer = network.bare.get_submodule(first)
    if isinstance(layer, nn.Conv2d) and (cifar or network.channels != 3):
        shape = f"{layer.in_channels}, {layer.out_channels}, {layer.kernel_size}, {layer.stride}"
        convolution = f"torch.nn.Conv2d({shape}, {layer.padding}, bias={layer.bias is not None})"
        lines.append(f'model.set_submodule("{first}", {convolution})')
    if cifar:
        lines.append("model.maxpool = torch.nn.Identity()")
    return lines


TORCHVISION = Format("torchvision", "torchvision", "load_state_dict of torchvision.models", _write)
