"""Encoder files: the weights as safetensors, with a header that says how to rebuild the network."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save

from contrasweep.given_files import check_given
from contrasweep.models.encoders.encoder import Encoder
from contrasweep.models.encoders.given import ImageInput, ViewsInput
from contrasweep.models.encoders.multiview import build_multiview_encoder
from contrasweep.models.encoders.registry import build_encoder

FORMAT = "contrasweep-encoder-1"
LARGEST = 10_000
"""The most channels, and pixels a side, of an encoder that is read: more would fill the memory."""

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
    """Return the encoder saved at `path` on the CPU, in evaluation mode; `.width` is that of its features.

    The file may hold an encoder of images, or the encoders of several views. What it `.takes` is checked at
    each call: images are floats `(B, C, S, S)` in 0..1, as `contrasweep.data.whole_image` makes them of 8-bit
    images; other shapes, types and values raise ValueError. `.body` is the same network without the check.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is not an encoder that contrasweep wrote.
    """
    if not os.path.lexists(path):
        raise FileNotFoundError(f"no encoder file at {path}")
    check_given(path)
    try:
        return _rebuilt(path)
    except (ArithmeticError, LookupError, RuntimeError, SafetensorError, TypeError, ValueError) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path} is not an encoder of contrasweep: {why}") from error


def _rebuilt(path: str | Path) -> Encoder:
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
    if metadata.get("format") != FORMAT:
        raise ValueError(f"format {metadata.get('format')!r}")
    header = json.loads(metadata["encoder"])
    if not isinstance(header, dict) or not (kinds := [key for key in _BUILDERS if key in header]):
        raise ValueError("its header does not describe the input")
    if max(header.get("channels", 0), header.get("image_size", 0)) > LARGEST:
        raise ValueError(f"channels and image_size are at most {LARGEST:,}")
    # The weights drawn here are replaced at once, so they must not change the caller's random numbers.
    with torch.random.fork_rng(devices=[]):
        encoder = _BUILDERS[kinds[0]](**header)
    encoder.load_state_dict(load_file(path))
    return encoder.eval().checking(_input(header))


def _input(header: Mapping[str, Any]) -> ImageInput | ViewsInput:
    if "channels" in header:
        return ImageInput(header["channels"], header["image_size"])
    return ViewsInput(tuple(tuple(shape) for shape in header["views"]))


def _file(encoder: Encoder, header: Mapping[str, Any], experiment: str) -> bytes:
    tensors = {key: value.detach().cpu().contiguous() for key, value in encoder.state_dict().items()}
    return save(tensors, metadata={"format": FORMAT, "encoder": json.dumps(header), "experiment": experiment})
