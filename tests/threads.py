"""How many threads torch computes with: sums of floats depend on it."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def torch_threads(count: int | None = None) -> Iterator[None]:
    """Let torch compute with so many threads inside, and with as many as before after it.

    Without a count nothing changes but what the block itself sets, which is undone.
    """
    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
