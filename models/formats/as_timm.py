"""A folder that `timm.create_model` loads, by its weights or as `local-dir:FOLDER`."""

from typing import Any

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
    architecture = f"resnet{imagenet_resnet(network, 'timm')}"
    arguments: dict[str, Any] = {} if network.channels == 3 else {"in_chans": network.channels}
    return timm_package(network, architecture, arguments)


def timm_package(network: Network, architecture: str, arguments: dict[str, Any]) -> Package:
    """Return the package of a network of timm: its name there and its `arguments`, beside `num_classes=0`."""
    content = {
        "architecture": architecture,
        "num_classes": 0,
        "num_features": network.encoder.width,
        "model_args": arguments,
        "pretrained_cfg": {
            "input_size": [network.channels, network.size, network.size],
            "interpolation": "bilinear",
            "crop_pct": 1.0,
            "crop_mode": "squash",
            "mean": list(network.mean),
            "std": list(network.std),
            "num_classes": 0,
        },
    }
    example = _EXAMPLE.format(
        architecture=architecture,
        arguments="".join(f", {name}={value!r}" for name, value in arguments.items()),
        weights=WEIGHTS,
        mean=list(network.mean),
        std=list(network.std),
    )
    return Package({WEIGHTS: weights_file(network.weights), CONFIG: json_file(content)}, example)


TIMM = Format("timm", "timm", "timm.create_model", _write)
