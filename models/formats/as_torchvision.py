"""Weights under torchvision's names, for `load_state_dict`."""

from contrasweep.models.formats.network import Network, NotOffered
from contrasweep.models.formats.package import CONFIG, WEIGHTS, Format, Package, json_file, weights_file
from contrasweep.models.formats.resnets import CIFAR_STEM, IMAGENET_STEM

_EXAMPLE = """\
import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from torchvision.models import {function}

model = {function}()
{changes}model.load_state_dict(load_file("{weights}"))
given = json.loads(Path("{config}").read_text())["preprocessing"]
mean, std = (torch.tensor(given[name]).view(1, -1, 1, 1) for name in ("mean", "std"))
with torch.no_grad():
    features = model.eval()((images - mean) / std)
"""


def _write(network: Network) -> Package:
    depth = {**IMAGENET_STEM, **CIFAR_STEM}.get(network.name)
    if depth is None:
        raise NotOffered(
            f"torchvision has no network {network.name}; --format onnx takes every encoder of images"
        )
    function = f"resnet{depth}"
    content = {
        "library": "torchvision",
        "model": function,
        "num_features": network.encoder.width,
        "preprocessing": network.preprocessing,
    }
    example = _EXAMPLE.format(function=function, changes=_changes(network), weights=WEIGHTS, config=CONFIG)
    return Package({WEIGHTS: weights_file(network.weights), CONFIG: json_file(content)}, example)


def _changes(network: Network) -> str:
    """Return the lines that make torchvision's network the exported one."""
    cifar = network.name in CIFAR_STEM
    lines = ["model.fc = torch.nn.Identity()"]
    if cifar or network.channels != 3:
        kernel, stride, padding = (3, 1, 1) if cifar else (7, 2, 3)
        shape = f"{network.channels}, 64, {kernel}, {stride}, {padding}"
        lines.append(f"model.conv1 = torch.nn.Conv2d({shape}, bias=False)")
    if cifar:
        lines.append("model.maxpool = torch.nn.Identity()")
    return "".join(f"{line}\n" for line in lines)


TORCHVISION = Format("torchvision", "torchvision", "load_state_dict of torchvision.models", _write)
