"""What an export consists of: files, and the lines of Python that load them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from safetensors.torch import save
from torch import Tensor

from contrasweep.models.formats.network import Network

WEIGHTS = "model.safetensors"
CONFIG = "config.json"


@dataclass(frozen=True)
class Package:
    """The files of an export, by name, and an example.

    `example` is Python that runs in the folder of the files, after `images` was set to floats
    `(B, C, S, S)` in 0..1; it sets `features` to the features `(B, width)`.
    """

    files: Mapping[str, bytes]
    example: str


@dataclass(frozen=True)
class Format:
    """A format: its name, the library that reads it and the call that does, and what writes it.

    `write` raises NotOffered where the format cannot hold a network.
    """

    name: str
    library: str
    reader: str
    write: Callable[[Network], Package]


def weights_file(weights: Mapping[str, Tensor]) -> bytes:
    """Return a safetensors file that PyTorch libraries read."""
    return save({name: value.contiguous() for name, value in weights.items()}, metadata={"format": "pt"})


def json_file(content: Mapping[str, Any]) -> bytes:
    """Return a JSON file for people and programs."""
    return (json.dumps(content, indent=2) + "\n").encode()
