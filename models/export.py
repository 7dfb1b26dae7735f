"""Encoder files: the weights as safetensors, with a header that says how to rebuild the network."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save

from contrasweep.models.encoders.encoder import Encoder
from contrasweep.models.encoders.multiview import build_multiview_encoder
from contrasweep.models.encoders.registry import build_encoder

FORMAT = "contrasweep-encoder-1"

_BUILDERS: Mapping[str, Callable[..., Encoder]] = {
    "channels": build_encoder,
    "views": build_multiview_encoder,
}
"""Builders, by the key of the header that describes the encoder's input."""


def encoder_bytes(
    encoder: Encoder,
    *,
    name: str,
    channels: int,
    image_size: int,
    mean: Sequence[float] = (),
    std: Sequence[float] = (),
    experiment: str = "",
) -> bytes:
    """Return the content of an encoder file (safetensors); `load_encoder` reads it back.

    The encoder was built by `build_encoder(name, channels, image_size, mean, std)`. The header keeps
    `experiment`, the experiment that trained it, as JSON for human readers.
    """
    header = {"name": name, "channels": channels, "image_size": image_size}
    return _file(encoder, {**header, "mean": list(mean), "std": list(std)}, experiment)


def multiview_encoder_bytes(
    encoder: Encoder, *, name: str, views: Sequence[Sequence[int]], experiment: str = ""
) -> bytes:
    """Return the same for the encoders of several views, built by `build_multiview_encoder(name, views)`."""
    shapes = [list(shape) for shape in views]
    return _file(encoder, {"name": name, "views": shapes}, experiment)


def load_encoder(path: str | Path) -> Encoder:
    """Return the encoder saved at `path` on the CPU, in evaluation mode.

    The file may hold an encoder of images, or the encoders of several views.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is not an encoder that contrasweep wrote.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"no encoder file at {path}")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
    except SafetensorError as error:
        raise ValueError(f"{path} is not an encoder of contrasweep: {error}") from None
    if metadata.get("format") != FORMAT:
        raise ValueError(f"{path} is not an encoder of contrasweep (format {metadata.get('format')!r})")
    header = json.loads(metadata["encoder"])
    build = _BUILDERS[next(key for key in _BUILDERS if key in header)]
    # The weights drawn here are replaced at once, so they must not change the caller's random numbers.
    with torch.random.fork_rng(devices=[]):
        encoder = build(**header)
    encoder.load_state_dict(load_file(path))
    return encoder.eval()


def _file(encoder: Encoder, header: Mapping[str, Any], experiment: str) -> bytes:
    tensors = {key: value.detach().cpu().contiguous() for key, value in encoder.state_dict().items()}
    return save(tensors, metadata={"format": FORMAT, "encoder": json.dumps(header), "experiment": experiment})
