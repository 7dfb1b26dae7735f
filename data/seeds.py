"""Random streams by name: every use of chance has its own seed, derived from the words that describe it.

Adding a dataset, a parameter or a worker therefore changes no other stream.
"""

import hashlib
import operator

import numpy as np
import torch


def named_seed(*parts: str | int) -> int:
    """Return the 63-bit seed that belongs to a name such as ``("views", seed, epoch, step)``.

    The same on every platform and in every Python process. Words and numbers are told apart
    (``"1"`` is not ``1``) and so are the borders between parts (``"ab", "c"`` is not ``"a", "bc"``).

    Raises:
        ValueError: no part was given.
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
    """Return a CPU generator seeded by name; the CPU, so that every device sees the same draws."""
    return torch.Generator().manual_seed(named_seed(*parts))


def numpy_generator(*parts: str | int) -> np.random.Generator:
    """Return a NumPy generator seeded by name."""
    return np.random.default_rng(named_seed(*parts))
