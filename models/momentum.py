"""Slow memories: a copy of a module that follows it, a queue of earlier keys, and a row for each image."""

import copy
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


def rising_momentum(start: float, step: int, steps: int) -> float:
    """Return the momentum of step `step` (from 0) of `steps`: from `start` to 1 along half a cosine.

    Source: BYOL (Grill et al. 2020), Section 3.2: `1 - (1 - start) (cos(pi k / K) + 1) / 2`.
    """
    return 1 - (1 - start) * (math.cos(math.pi * step / steps) + 1) / 2


class MomentumCopy(nn.Module):
    """An exponential moving average of another module's parameters: `own = m * own + (1 - m) * theirs`.

    It starts as an exact copy. Its parameters need no gradient, and its forward pass records none.

    Buffers are neither averaged nor copied. As in MoCo, the copy runs in the same mode as the original, so in
    training its batch norm normalises by the batch of keys and keeps its own running statistics.

    Attributes:
        module: the copy.
        momentum: m, in [0, 1].

    Source: MoCo (He et al. 2020), Eq. 2, m = 0.999.
    """

    def __init__(self, source: nn.Module, momentum: float = 0.999) -> None:
        super().__init__()
        if not 0 <= momentum <= 1:
            raise ValueError(f"momentum must lie in [0, 1], got {momentum!r}")
        self.module = copy.deepcopy(source).requires_grad_(False)
        self.momentum = momentum

    @torch.no_grad()
    def forward(self, inputs: Tensor) -> Tensor:
        """Return the copy's outputs for `inputs`, without gradient."""
        outputs: Tensor = self.module(inputs)
        return outputs

    @torch.no_grad()
    def follow(self, source: nn.Module, momentum: float | None = None) -> None:
        """Move the copy towards the original, `source`. Call it once per step, before computing the keys.

        `momentum` holds for this call alone; None means the copy's own.

        Raises:
            ValueError: the parameters of `source` are not those of the copy, or `momentum` is not in [0, 1].
        """
        if momentum is not None and not 0 <= momentum <= 1:
            raise ValueError(f"momentum must lie in [0, 1], got {momentum!r}")
        own, theirs = dict(self.module.named_parameters()), dict(source.named_parameters())
        if {n: p.shape for n, p in own.items()} != {n: p.shape for n, p in theirs.items()}:
            raise ValueError("the module to follow has other parameters than the copy was made of")
        share = 1 - (self.momentum if momentum is None else momentum)
        if own:
            torch._foreach_lerp_(list(own.values()), [theirs[name] for name in own], share)


class KeyQueue(nn.Module):
    """The last `size` keys, each of length 1, which are MoCo's negatives; new keys replace the oldest.

    The queue starts with random directions, which serve as negatives until keys replace them, as in MoCo;
    `filled` counts the rows that are keys. Keys, pointer and count are buffers, so a queue restored from a
    saved state continues bit for bit.

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


class MemoryBank(nn.Module):
    """One embedding, of length 1, for each training image: a moving average over the times that it was seen.

    It starts with random directions. The rows are a buffer, so a restored memory continues bit for bit.

    Attributes:
        rows: `(images, width)`. They change in place: call `follow` after the backward pass of a loss that
            uses them.
        momentum: the share in [0, 1] that a row keeps of itself.

    Source: Wu et al. 2018, Section 3.1; the average is that of their and of IDFD's released code (0.5).
    """

    rows: Tensor

    def __init__(self, images: int, width: int, momentum: float, generator: torch.Generator) -> None:
        super().__init__()
        if images < 1 or width < 1:
            raise ValueError(f"a memory needs images >= 1 and width >= 1, got {images} and {width}")
        if not 0 <= momentum <= 1:
            raise ValueError(f"momentum must lie in [0, 1], got {momentum!r}")
        start = torch.randn(images, width, generator=generator, device=generator.device)
        self.register_buffer("rows", F.normalize(start, dim=1))
        self.momentum = momentum

    @torch.no_grad()
    def follow(self, index: Tensor, embeddings: Tensor) -> None:
        """Move the rows `index` `(B,)`, each named once, towards `embeddings` `(B, width)`.

        The embeddings are normalised here, and the rows keep the length 1. Each of several processes must get
        the embeddings of all of them.

        Raises:
            ValueError: the shapes are others.
        """
        if index.ndim != 1 or embeddings.shape != (len(index), self.rows.shape[1]):
            shapes = f"{tuple(index.shape)} and {tuple(embeddings.shape)}"
            raise ValueError(f"index must be (B,) and embeddings (B, {self.rows.shape[1]}), got {shapes}")
        seen = F.normalize(embeddings.to(self.rows), dim=1)
        self.rows[index] = F.normalize(self.momentum * self.rows[index] + (1 - self.momentum) * seen, dim=1)
