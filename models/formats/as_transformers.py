"""A folder that `transformers.AutoModel.from_pretrained` loads, under the names of its own ResNet."""

import re
from typing import Any

from contrasweep.models.formats.as_timm import timm_config
from contrasweep.models.formats.network import Network
from contrasweep.models.formats.package import CONFIG, WEIGHTS, Format, Package, json_file, weights_file
from contrasweep.models.formats.resnets import BLOCKS, imagenet_resnet

PROCESSOR = "preprocessor_config.json"
BILINEAR = 2
"""Pillow's number for the bilinear filter, which the image processors of transformers take."""

_EXAMPLE = """\
import torch
from transformers import AutoModel

model = AutoModel.from_pretrained(".")
mean = torch.tensor({mean}).view(1, -1, 1, 1)
std = torch.tensor({std}).view(1, -1, 1, 1)
with torch.no_grad():
    features = model.eval()((images - mean) / std).pooler_output.flatten(1)
"""

_WRAPPED = "timm_model.{}"
_STEM = "embedder.embedder"
_NAMES: tuple[tuple[str, str], ...] = (
    (r"conv1\.(.+)", _STEM + r".convolution.\1"),
    (r"bn1\.(.+)", _STEM + r".normalization.\1"),
    (r"layer(\d)\.(\d)\.conv(\d)\.(.+)", r"encoder.stages.<\1>.layers.\2.layer.<\3>.convolution.\4"),
    (r"layer(\d)\.(\d)\.bn(\d)\.(.+)", r"encoder.stages.<\1>.layers.\2.layer.<\3>.normalization.\4"),
    (r"layer(\d)\.(\d)\.downsample\.0\.(.+)", r"encoder.stages.<\1>.layers.\2.shortcut.convolution.\3"),
    (r"layer(\d)\.(\d)\.downsample\.1\.(.+)", r"encoder.stages.<\1>.layers.\2.shortcut.normalization.\3"),
)
"""Patterns of torchvision's names, and those of transformers. A number in <> counts from zero there."""


def transformers_name(name: str) -> str:
    """Return what transformers calls a parameter or buffer of torchvision's ResNet.

    Raises:
        ValueError: torchvision's ResNet has no such name.
    """
    for pattern, theirs in _NAMES:
        found = re.fullmatch(pattern, name)
        if found is not None:
            return re.sub(r"<(\d)>", lambda number: str(int(number[1]) - 1), found.expand(theirs))
    raise ValueError(f"a ResNet has no parameter {name!r}")


def _write(network: Network) -> Package:
    of_timm = network.name.startswith("timm:")
    config = _timm_wrapper(network) if of_timm else _resnet(network)
    name_of = _WRAPPED.format if of_timm else transformers_name
    weights = {name_of(name): value for name, value in network.weights.items()}
    files = {
        WEIGHTS: weights_file(weights),
        CONFIG: json_file(config),
        PROCESSOR: json_file(_processor(network)),
    }
    return Package(files, _EXAMPLE.format(mean=list(network.mean), std=list(network.std)))


def _timm_wrapper(network: Network) -> dict[str, Any]:
    """Return the configuration with which transformers loads a network of timm, which must be installed."""
    return {
        "model_type": "timm_wrapper",
        "architectures": ["TimmWrapperModel"],
        **timm_config(network, "transformers"),
    }


def _resnet(network: Network) -> dict[str, Any]:
    """Return the configuration of transformers' own ResNet."""
    depth = imagenet_resnet(network, "transformers")
    bottleneck = depth == 50
    expansion = 4 if bottleneck else 1
    return {
        "model_type": "resnet",
        "architectures": ["ResNetModel"],
        "num_channels": network.channels,
        "embedding_size": 64,
        "hidden_sizes": [width * expansion for width in (64, 128, 256, 512)],
        "depths": list(BLOCKS[depth]),
        "layer_type": "bottleneck" if bottleneck else "basic",
        "hidden_act": "relu",
        "downsample_in_first_stage": False,
        "downsample_in_bottleneck": False,
        "torch_dtype": "float32",
    }


def _processor(network: Network) -> dict[str, Any]:
    """Return how transformers' image processor prepares images."""
    return {
        # The processor of their ResNets, BiT, cuts the centre out. That of ViT would squeeze the whole image.
        "image_processor_type": "BitImageProcessor",
        "do_convert_rgb": network.channels == 3,
        "do_resize": True,
        "size": {"shortest_edge": network.resized},
        "resample": BILINEAR,
        "do_center_crop": True,
        "crop_size": {"height": network.size, "width": network.size},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": list(network.mean),
        "image_std": list(network.std),
    }


TRANSFORMERS = Format("hf", "transformers", "transformers.AutoModel.from_pretrained", _write)
