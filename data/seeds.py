"""Random streams by name: each use of random numbers has its own seed, derived from words that describe it.

So a new dataset, parameter or worker changes no other stream.
"""

import hashlib
import operator
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def named_seed(*parts: str | int) -> int:
    """Return the 63-bit seed of a name such as ``("views", seed, epoch, step)``.

    It is the same on every platform and in every Python process. Words and numbers give different seeds
    (``"1"`` is not ``1``), and so do different borders between parts (``"ab", "c"`` is not ``"a", "bc"``).

    Raises:
        ValueError: the name has no parts.
        TypeError: a part is neither a string nor an integer.
    """
    if not parts:
        raise ValueError("a named seed needs at least one part, for example named_seed('views', 0)")
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        kind, text = ("s", part) if isinstance(part, str) else ("i", str(operator.index(part)))
        encoded = text.encode()
        digest.update(f"{kind}{len(encoded)}:".encode())
        digest.update(encoded)
    return int.from_bytes(digest.digest(), "big") >> 1


def torch_generator(*parts: str | int) -> torch.Generator:
    """Return a CPU generator seeded by name; on the CPU, so that every device gets the same draws."""
    return torch.Generator().manual_seed(named_seed(*parts))


@contextmanager
def drawing(*parts: str | int, device: torch.device | None = None) -> Iterator[None]:
    """Seed torch's own generators by name within the block, for code that takes no generator.

    Afterwards that of the CPU goes on where it was, and so does that of `device`.
    """
    with torch.random.fork_rng([device] if device is not None and device.type == "cuda" else []):
        torch.manual_seed(named_seed(*parts))
        yield


def numpy_generator(*parts: str | int) -> np.random.Generator:
    """Return a NumPy generator seeded by name."""
    return np.random.default_rng(named_seed(*parts))
