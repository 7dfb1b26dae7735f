"""The processes (ranks) that train one run together, each on its part of every batch.

Every rank holds the whole objective. It computes the loss of the whole batch from its own rows and the rows
gathered from the others. The average of the gradients over ranks is then the gradient of one process, and all
ranks take the same step. torch's DistributedDataParallel is not used: it requires one forward pass of one
module in each step, whose parameters all learn, and it would copy buffers (queues, running statistics) that
are equal already.

`batch_norm` normalises over the images of all ranks.
"""

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
import torch.distributed as dist
from torch import Tensor, nn

from contrasweep.losses.gather import collective, gather
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.objectives.rank_timeouts import wait_for_ranks

T = TypeVar("T")

AGREEMENT = 1e-3
"""The largest relative difference between ranks' losses that rounding can explain."""


@runtime_checkable
class OfKnownLengths(Protocol):
    """A batch of one of several ranks that knows how many rows the others have."""

    def lengths(self, world: int) -> tuple[tuple[int, ...], ...]:
        """Return the rows of every rank, for each kind of rows that a step gathers; nothing if unknown."""


@dataclass(frozen=True)
class Ranks:
    """The place of this process among those of a run; torch's default process group connects them.

    Attributes:
        rank: 0..world-1; rank 0 writes and evaluates, and its values hold where ranks could differ.
        world: the number of processes.
    """

    rank: int = 0
    world: int = 1

    def gather(self, tensor: Tensor, dim: int, lengths: Sequence[int] | None = None) -> Tensor:
        """Return `tensor` of all ranks, concatenated along `dim`, with gradient; see `losses.gather`."""
        return tensor if self.world == 1 else gather(tensor, dim, lengths)

    def gather_of(self, batch: object) -> Callable[[Tensor, int], Tensor]:
        """Return `gather` for tensors with a row for each of this rank's images or objects of `batch`.

        If the batch is `OfKnownLengths`, the ranks need not tell each other how many rows they have.
        """
        known = set(batch.lengths(self.world)) if isinstance(batch, OfKnownLengths) else set()
        of_rank = list(zip(*known, strict=True))
        # Two kinds of which some rank has as many rows could not be told from each other on that rank.
        if self.world == 1 or not known or any(len(set(lengths)) < len(known) for lengths in of_rank):
            return self.gather

        def gather_rows(tensor: Tensor, dim: int) -> Tensor:
            own = tensor.shape[dim]
            found = [lengths for lengths in known if lengths[self.rank] == own]
            if not found:
                raise ValueError(
                    f"a step gathers rows of its batch, of which this rank has "
                    f"{' or '.join(str(lengths[self.rank]) for lengths in known)}; given {own} along {dim}. "
                    "`contrasweep.losses.gather` takes tensors of any length"
                )
            return gather(tensor, dim, found[0])

        return gather_rows

    def once(self, compute: Callable[[], T]) -> T:
        """Call `compute()` on the first rank; return its result, or raise its exception, on every rank."""
        if self.world == 1:
            return compute()
        told: list[Any] = [None, None]
        own: Exception | None = None
        if self.rank == 0:
            try:
                told[0] = compute()
            except Exception as error:  # noqa: BLE001 - raised below, on all ranks: they wait for an answer
                own, told[1] = error, _sendable(error)
        # The computation may take longer than a collective may: the others wait for its end in another way.
        wait_for_ranks(self.rank, [0])
        with collective():
            dist.broadcast_object_list(told, src=0)
        if told[1] is not None:
            raise told[1] if own is None else own
        result: T = told[0]
        return result

    def copy_first(self, module: nn.Module) -> None:
        """Give every rank the first one's parameters and buffers."""
        if self.world > 1:
            # A rank comes here when it has loaded its data, which takes longer on some nodes.
            wait_for_ranks(self.rank, range(self.world))
            with collective(), torch.no_grad():
                for tensor in module.state_dict().values():
                    dist.broadcast(tensor, src=0)

    def average_gradients(self, module: nn.Module) -> None:
        """Replace every gradient of `module` by its mean over ranks, in one exchange."""
        gradients = [weight.grad for weight in module.parameters() if weight.grad is not None]
        if self.world == 1 or not gradients:
            return
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        with collective():
            dist.all_reduce(flat)
        parts = torch.split(flat.div_(self.world), [gradient.numel() for gradient in gradients])
        for gradient, mean in zip(gradients, parts, strict=True):
            gradient.copy_(mean.view_as(gradient))

    def agreed(self, losses: Tensor, method: str) -> Tensor:
        """Return the first rank's `losses` `(steps,)` of an epoch after a check that all ranks agree.

        Raises:
            RuntimeError: they differ; raised on every rank. The objective does not compute the loss of the
                whole batch, or ranks hold different states.
        """
        if self.world == 1:
            return losses
        of_ranks = gather(losses.detach()[None].float(), 0, [1] * self.world)
        first = of_ranks[:1].expand_as(of_ranks)
        if not torch.allclose(of_ranks, first, rtol=AGREEMENT, atol=1e-5, equal_nan=True):
            step = int((of_ranks - first).abs().nan_to_num(torch.inf).amax(dim=0).argmax())
            raise RuntimeError(
                f"{method}: the workers' losses of one step differ ({of_ranks[:, step].tolist()}); each "
                "must compute the loss of the whole batch, from tensors that `gather` has made whole"
            )
        return of_ranks[0]


ONE = Ranks()
"""One process by itself."""


def group_ranks() -> Ranks:
    """Return this process's place in torch's default process group; `ONE` without a group."""
    if not dist.is_available() or not dist.is_initialized():
        return ONE
    return Ranks(dist.get_rank(), dist.get_world_size())


def check_batch_size(batch_size: int, workers: int) -> None:
    """Raise InputError unless a batch divides among the workers of a run."""
    if workers > 1 and batch_size % workers:
        below, above = batch_size - batch_size % workers, batch_size - batch_size % workers + workers
        near = f"{below} or {above}" if below else str(above)
        raise InputError(
            f"batch_size {batch_size} does not divide among {workers} workers: give {near}, or other workers"
        )


def _sendable(error: Exception) -> Exception:
    """Return what stands for an error in other processes: itself, or its words if it cannot be sent."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 a library's error may fail in any way
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
