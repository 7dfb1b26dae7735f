"""Weights from a file into an encoder: a safetensors file, or a state dict that torch saved.

Nothing in a file is executed. What surrounds the network's weights in it is looked through: mappings such
as `state_dict`, prefixes such as `module.` or `encoder.`, and the classifier or projection head, which an
encoder does not have.
"""

import argparse
import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor, nn

from contrasweep.given_files import read_given
from contrasweep.models.encoders.encoder import Encoder, Normalisation
from contrasweep.names import few, few_quoted

WRAPPERS = (
    *("state_dict", "model_state_dict", "model", "network", "net", "module", "encoder", "backbone"),
    "teacher",
)
"""The keys under which a checkpoint may hold the tensors, from the outside in.

Of the two networks of DINO, its authors evaluate the teacher.
"""

HEADS = (
    *("fc", "classifier", "classifiers", "head", "heads", "head_dist", "linear", "last_linear", "AuxLogits"),
    *("aux1", "aux2", "projector", "projection_head", "predictor", "prototypes"),
)
"""The modules of published networks that come after the features; their tensors are left out."""


@dataclass(frozen=True, eq=False)
class StoredWeights:
    """The tensors of a file.

    Attributes:
        place: the file, for messages.
        tensors: the tensors by name.
        inside: the keys of the mappings around them.
        digest: SHA-256 of the file, in hexadecimal digits.
        header: how to build the network, where contrasweep wrote the file.
    """

    place: str
    tensors: Mapping[str, Tensor]
    inside: tuple[str, ...]
    digest: str
    header: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class FittingWeights:
    """The tensors of a file under the names of a network, and what was done to fit them, in words."""

    tensors: Mapping[str, Tensor]
    remarks: tuple[str, ...]


def read_weights(path: str | Path) -> StoredWeights:
    """Read a file of weights.

    Raises:
        ValueError: it cannot be read, or it holds no tensors by name.
    """
    content = read_given(path)
    digest = hashlib.sha256(content).hexdigest()
    if content[8:9] == b"{" and content[:2] != b"PK":
        return _of_safetensors(path, content, digest)
    try:
        # Training scripts keep their options beside the weights, DINO's and SupCon's among them.
        with torch.serialization.safe_globals([argparse.Namespace]):
            held = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:  # on bytes of another origin, torch raises nearly everything
        raise ValueError(
            f"{path} is no safetensors file and no state dict of torch ({type(error).__name__}); "
            "torch.save(model.state_dict(), FILE) writes one"
        ) from error
    tensors, inside = _unwrapped(held)
    if not tensors:
        keys = few_quoted(map(str, held)) if isinstance(held, Mapping) else type(held).__name__
        raise ValueError(f"{path} holds no tensors by name, but {keys or 'nothing'}")
    return StoredWeights(str(path), tensors, inside, digest, {})


def _of_safetensors(path: str | Path, content: bytes, digest: str) -> StoredWeights:
    try:
        tensors = load(content)
        header = json.loads(metadata_of(content).get("encoder", "{}"))
    except (LookupError, RuntimeError, SafetensorError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is no readable safetensors file: {error}") from error
    return StoredWeights(str(path), tensors, (), digest, header if isinstance(header, Mapping) else {})


def metadata_of(content: bytes) -> dict[str, str]:
    """Return the metadata of a safetensors file: its first 8 bytes are the length of its header in JSON."""
    length = int.from_bytes(content[:8], "little")
    metadata: dict[str, str] = json.loads(content[8 : 8 + length]).get("__metadata__") or {}
    return metadata


def _unwrapped(held: object) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """Return the tensors of what torch saved, and the keys of the mappings around them."""
    if not isinstance(held, Mapping):
        return {}, ()
    # Checkpoints hold tensors beside the network, such as the best accuracy in that of torch's example for
    # ImageNet, so the mappings are looked into first.
    for key in WRAPPERS:
        tensors, inside = _unwrapped(held.get(key))
        if tensors:
            return tensors, (key, *inside)
    return {str(key): value for key, value in held.items() if isinstance(value, Tensor)}, ()


def network_of(encoder: Encoder) -> nn.Module:
    """Return the network of an encoder of images, without the normalisation in front of it."""
    body = encoder.body
    if isinstance(body, nn.Sequential) and len(body) and isinstance(body[0], Normalisation):
        return body[1]
    return body


def load_weights(encoder: Encoder, stored: StoredWeights) -> None:
    """Load the weights of a file into an encoder of images.

    Raises:
        ValueError: see `fitting`.
    """
    network = network_of(encoder)
    load_tensors(network, fitting(stored, network).tensors, strict=False)


def load_tensors(network: nn.Module, tensors: Mapping[str, Tensor], *, strict: bool = True) -> None:
    """Load tensors into a network of the version that wrote them.

    Some networks (torchvision's MNASNet) keep a version number beside their tensors, and refuse tensors
    without one; no file of tensors has it.

    Raises:
        RuntimeError: with `strict`, a tensor is missing, has another shape, or is one too many.
    """
    own = network.state_dict()
    own.clear()  # its version numbers stay
    own.update(tensors)
    network.load_state_dict(own, strict=strict)


def fitting(stored: StoredWeights, network: nn.Module) -> FittingWeights:
    """Return the weights of a file under the names of `network`, which may be without memory.

    Raises:
        ValueError: one of the network is missing in the file, has another shape there, or holds whole
            numbers, NaN or Inf; the file has one more that belongs to no head, or several networks fit.
    """
    wanted = network.state_dict()
    prefix = _prefix(stored, wanted)
    inside = {key.removeprefix(prefix): one for key, one in stored.tensors.items() if key.startswith(prefix)}
    outside = [key for key in stored.tensors if not key.startswith(prefix)]
    extra = [key for key in inside if key not in wanted]
    heads = [key for key in extra if key.partition(".")[0] in HEADS]
    # Batch norms of old versions of torch did not count their batches.
    counters = {key for key in wanted if key.endswith("num_batches_tracked") and key not in inside}
    own = {key: value for key, value in wanted.items() if key not in counters}
    told = differences(own, {key: value for key, value in inside.items() if key not in heads})
    if told:
        raise ValueError(f"{stored.place} does not fit the network: {told}")
    if broken := _broken(network, inside):
        raise ValueError(f"{stored.place} holds no usable weights: {broken}")
    remarks = [f"{'.'.join(stored.inside)!r} unwrapped"] if stored.inside else []
    remarks += [f"prefix {prefix!r} stripped"] if prefix else []
    remarks += [f"left out {few([*heads, *outside])}"] if heads or outside else []
    return FittingWeights({key: inside[key] for key in wanted if key in inside}, tuple(remarks))


def differences(wanted: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> str:
    """Return in what names and shapes `given` tensors differ from the `wanted` ones; empty: in none."""
    shapes = [
        f"{key} {tuple(given[key].shape)}, here {tuple(wanted[key].shape)}"
        for key in wanted
        if key in given and given[key].shape != wanted[key].shape
    ]
    faults = {
        "missing": [key for key in wanted if key not in given],
        "unexpected": [key for key in given if key not in wanted],
        "of another shape": shapes,
    }
    return "; ".join(f"{what}: {few(names)}" for what, names in faults.items() if names)


def _broken(network: nn.Module, given: Mapping[str, Tensor]) -> str:
    """Return which of the weights `given` for a network are no finite fractions; empty: none."""
    # Other buffers may hold Inf, such as a constant mask.
    statistics = (
        name for name, _ in network.named_buffers() if name.endswith(("running_mean", "running_var"))
    )
    names = [*(name for name, _ in network.named_parameters()), *statistics]
    faults = {
        "whole numbers (quantised)": [name for name in names if not given[name].is_floating_point()],
        "NaN or Inf": [name for name in names if not bool(given[name].float().isfinite().all())],
    }
    return "; ".join(f"{what} in {few(found)}" for what, found in faults.items() if found)


def _prefix(stored: StoredWeights, wanted: Iterable[str]) -> str:
    """Return what stands before the names of a network in a file: the prefix under which most are found."""
    names = set(wanted)
    found: Counter[str] = Counter()
    for key in stored.tensors:
        parts = key.split(".")
        for start in range(len(parts)):
            name = ".".join(parts[start:])
            if name in names:
                found[key.removesuffix(name)] += 1
    if not found:
        there, here = few_quoted(stored.tensors), few_quoted(sorted(names))
        raise ValueError(
            f"{stored.place} has none of the network's tensors: it has {there}, the network {here}"
        )
    most = max(found.values())
    best = [prefix for prefix, count in found.items() if count == most]
    if len(best) > 1 and most > len(names) / 2:
        raise ValueError(
            f"{stored.place} holds several networks that fit, under {', '.join(map(repr, sorted(best)))}: "
            "save the tensors of one of them to a file"
        )
    return min(best, key=len)
