"""A folder that `timm.create_model` loads, by its weights or as `local-dir:FOLDER`."""

import math
from typing import Any

from contrasweep.models.encoders.libraries import timm_options
from contrasweep.models.formats.network import Network
from contrasweep.models.formats.package import CONFIG, WEIGHTS, Format, Package, json_file, weights_file
from contrasweep.models.formats.resnets import imagenet_resnet

_EXAMPLE = """\
import timm
import torch

model = timm.create_model("{architecture}", num_classes=0{arguments}, checkpoint_path="{weights}")
mean = torch.tensor({mean}).view(1, -1, 1, 1)
std = torch.tensor({std}).view(1, -1, 1, 1)
with torch.no_grad():
    features = model.eval()((images - mean) / std)
"""


def _write(network: Network) -> Package:
    config = timm_config(network, "timm")
    mean, std = list(network.mean), list(network.std)
    arguments = "".join(f", {name}={value!r}" for name, value in config["model_args"].items())
    example = _EXAMPLE.format(
        architecture=config["architecture"], arguments=arguments, weights=WEIGHTS, mean=mean, std=std
    )
    return Package({WEIGHTS: weights_file(network.weights), CONFIG: json_file(config)}, example)


def timm_config(network: Network, library: str) -> dict[str, Any]:
    """Return the `config.json` of a network that timm has too: its name and options there, its images.

    Raises:
        NotOffered: timm has no such network; the message speaks of the `library`.
    """
    source, _, model = network.name.partition(":")
    if source == "timm":
        architecture, arguments = model, timm_options(model, network.channels, network.size)
    else:
        depth = imagenet_resnet(network, library)
        architecture, arguments = f"resnet{depth}", {"in_chans": network.channels}
    return {
        "architecture": architecture,
        "num_classes": 0,
        "num_features": network.encoder.width,
        "model_args": arguments,
        "pretrained_cfg": {
            "input_size": [network.channels, network.size, network.size],
            "interpolation": "bilinear",
            "crop_pct": _crop_pct(network),
            "crop_mode": "center",
            "mean": list(network.mean),
            "std": list(network.std),
            "num_classes": 0,
        },
    }


def _crop_pct(network: Network) -> float:
    """Return the share with which timm, which rounds down, resizes to the size that we round to."""
    share = network.size / network.resized
    return share if math.floor(network.size / share) == network.resized else math.nextafter(share, 0)


TIMM = Format("timm", "timm", "timm.create_model", _write)
