"""A queue of keys from earlier batches: the negatives of MoCo."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


class KeyQueue(nn.Module):
    """The last `size` keys, each of length 1; new keys replace the oldest.

    The queue starts with random directions, which serve as negatives until keys replace them, as in MoCo;
    `entered` leaves them out. Keys, pointer and count are buffers, so a queue restored from a saved state
    continues bit for bit.

    Attributes:
        keys: `(size, width)`, rows of length 1, in no particular order. They change in place: use them before
            `enqueue`, and enqueue after the backward pass of a loss that uses them.
        pointer: int64 scalar, the next row to be replaced.
        filled: int64 scalar, the number of rows that are keys, not random directions.

    Source: MoCo (He et al. 2020), Section 3.2 (65,536 keys, 128 wide).
    """

    keys: Tensor
    pointer: Tensor
    filled: Tensor

    def __init__(self, size: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        if size < 1 or width < 1:
            raise ValueError(f"a queue needs size >= 1 and width >= 1, got {size} and {width}")
        start = torch.randn(size, width, generator=generator, device=generator.device)
        self.register_buffer("keys", F.normalize(start, dim=1))
        self.register_buffer("pointer", torch.zeros((), dtype=torch.int64, device=generator.device))
        self.register_buffer("filled", torch.zeros((), dtype=torch.int64, device=generator.device))

    @torch.no_grad()
    def enqueue(self, keys: Tensor) -> None:
        """Replace the B oldest rows by `keys` `(B, width)`, which are normalised here.

        If the batch is larger than the queue, its last `size` keys remain. Each of several processes must
        get the keys of all of them, in the same order.

        Raises:
            ValueError: the keys are not `(B, width)`.
        """
        size, width = self.keys.shape
        if keys.ndim != 2 or keys.shape[1] != width:
            raise ValueError(f"keys must be (B, {width}), got {tuple(keys.shape)}")
        passed = max(0, len(keys) - size)
        last = F.normalize(keys[passed:].to(self.keys), dim=1)
        # Everything stays on the device, so that no step waits for the pointer's value.
        rows = (self.pointer + passed + torch.arange(len(last), device=self.keys.device)) % size
        self.keys[rows] = last
        self.pointer.copy_((self.pointer + len(keys)) % size)
        self.filled.copy_((self.filled + len(keys)).clamp(max=size))
