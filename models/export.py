"""Encoder files: the weights as safetensors, with a header that says how to rebuild the network."""

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from contrasweep.given_files import read_given
from contrasweep.libraries import LibraryMissing, library_and_model, of_library
from contrasweep.models.encoders.encoder import Encoder
from contrasweep.models.encoders.inputs import ImageInput, ViewsInput
from contrasweep.models.encoders.multiview import build_multiview_encoder
from contrasweep.models.encoders.registry import UnknownEncoder, build_encoder
from contrasweep.models.encoders.weights import differences, load_tensors, metadata_of

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
        ValueError: the file is not an encoder that contrasweep wrote, or its network is of a library that is
            not installed.
    """
    if not os.path.lexists(path):
        raise FileNotFoundError(f"no encoder file at {path}")
    return read_encoder(read_given(path), str(path)).encoder


class _OtherNetwork(ValueError):
    """The weights of a file are not those of the network that its header names."""


@dataclass(frozen=True, eq=False)
class EncoderFile:
    """The content of an encoder file.

    Attributes:
        encoder: the trained encoder on the CPU, in evaluation mode; it checks its input.
        header: how to build the network.
        experiment: the experiment that trained it, as JSON; empty where the file does not say.
        digest: SHA-256 of the file, in hexadecimal digits.
    """

    encoder: Encoder
    header: Mapping[str, Any]
    experiment: str
    digest: str

    def network(self, *, trained: bool) -> Encoder:
        """Return a new network that does not check its input: with the file's weights, or untrained ones.

        Untrained weights come from torch's random numbers, as those of `build_encoder` do.
        """
        network = _built(self.header)
        if trained:
            network.load_state_dict(self.encoder.state_dict())
        return network


def read_encoder(content: bytes, place: str) -> EncoderFile:
    """Read the content of an encoder file; `place` names the file in messages.

    Raises:
        ValueError: the content is not an encoder that contrasweep wrote, or its network is another one here.
    """
    try:
        return _read(content)
    except (LibraryMissing, _OtherNetwork) as error:
        raise ValueError(f"{place}: {error}") from error
    except UnknownEncoder as error:
        advice = "If a plug-in adds it, install its package."
        raise ValueError(f"{place} is not an encoder that can be built here: {error} {advice}") from error
    except (ArithmeticError, LookupError, RuntimeError, SafetensorError, TypeError, ValueError) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{place} is not an encoder of contrasweep: {why}") from error


def _read(content: bytes) -> EncoderFile:
    weights, metadata = load(content), metadata_of(content)
    if metadata.get("format") != FORMAT:
        raise ValueError(f"format {metadata.get('format')!r}")
    header = json.loads(metadata["encoder"])
    if not isinstance(header, dict) or not any(key in header for key in _BUILDERS):
        raise ValueError("its header does not describe the input")
    if max(header.get("channels", 0), header.get("image_size", 0)) > LARGEST:
        raise ValueError(f"channels and image_size are at most {LARGEST:,}")
    # The weights drawn here are replaced at once, so they must not change the caller's random numbers.
    with torch.random.fork_rng(devices=[]):
        encoder = _built(header)
    other = differences(encoder.state_dict(), weights)
    if other:
        # Libraries and plug-ins change their networks from version to version.
        made = f" (written with {metadata['library']})" if "library" in metadata else ""
        raise _OtherNetwork(
            f"the file{made} has other weights than the network {header['name']} here: {other}"
        )
    load_tensors(encoder, weights)
    encoder.eval().checking(_input(header))
    digest = hashlib.sha256(content).hexdigest()
    return EncoderFile(encoder, header, metadata.get("experiment", ""), digest)


def _built(header: Mapping[str, Any]) -> Encoder:
    build = next(build for key, build in _BUILDERS.items() if key in header)
    return build(**header)


def _input(header: Mapping[str, Any]) -> ImageInput | ViewsInput:
    if "channels" in header:
        return ImageInput(header["channels"], header["image_size"])
    return ViewsInput(tuple(tuple(shape) for shape in header["views"]))


def _file(encoder: Encoder, header: Mapping[str, Any], experiment: str) -> bytes:
    # Copies, because safetensors refuses tensors that share memory, such as tied weights.
    tensors = {
        key: value.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
        for key, value in encoder.state_dict().items()
    }
    metadata = {"format": FORMAT, "encoder": json.dumps(header), "experiment": experiment}
    if of_library(header["name"]):
        library, _ = library_and_model(header["name"])
        metadata["library"] = f"{library} {version(library)}"
    return _with_ordered_metadata(save(tensors, metadata=metadata))


def _with_ordered_metadata(content: bytes) -> bytes:
    """Return a safetensors file with its metadata sorted by name.

    `save` writes them in another order each time, so that equal encoders would have other SHA-256 digests,
    by which an experiment knows the file that it starts from.
    """
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    written = json.dumps(header, separators=(",", ":")).encode()
    # The tensors begin at a multiple of 8 bytes, as `save` has it.
    written += b" " * (-len(written) % 8)
    return len(written).to_bytes(8, "little") + written + content[8 + length :]
