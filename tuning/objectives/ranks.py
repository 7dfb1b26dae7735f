"""The processes (ranks) that train one run together, each on its part of every batch.

Every rank holds the whole objective. It computes the loss of the whole batch from its own rows and the rows
gathered from the others. The average of the gradients over ranks is then the gradient of one process, and all
ranks take the same step. torch's DistributedDataParallel is not used: it requires one forward pass of one
module in each step, whose parameters all learn, and it would copy buffers (queues, running statistics) that
are equal already.

Batch norm is over the images of all ranks, so that a run's numbers do not depend on the number of ranks.
torch's `SyncBatchNorm` does this on a GPU. It does not run on a CPU; there `GlobalBatchNorm` does the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from contrasweep.losses.gather import collective, gather
from contrasweep.tuning.errors import InputError

T = TypeVar("T")

AGREEMENT = 1e-3
"""The largest relative difference between ranks' losses that rounding can explain."""


@dataclass(frozen=True)
class Ranks:
    """The place of this process among those of a run; torch's default process group connects them.

    Attributes:
        rank: 0..world-1; rank 0 writes and evaluates, and its values hold where ranks could differ.
        world: the number of processes.
    """

    rank: int = 0
    world: int = 1

    def gather(self, tensor: Tensor, dim: int) -> Tensor:
        """Return `tensor` of all ranks, concatenated along `dim`, with gradient; see `losses.gather`."""
        return tensor if self.world == 1 else gather(tensor, dim)

    def once(self, compute: Callable[[], T]) -> T:
        """Call `compute()` on the first rank; return its result, or raise its exception, on every rank."""
        if self.world == 1:
            return compute()
        told: list[Any] = [None, None]
        if self.rank == 0:
            try:
                told[0] = compute()
            except Exception as error:  # noqa: BLE001 - raised below, on all ranks: they wait for an answer
                told[1] = error
        with collective():
            dist.broadcast_object_list(told, src=0)
        if told[1] is not None:
            raise told[1]
        result: T = told[0]
        return result

    def copy_first(self, module: nn.Module) -> None:
        """Give every rank the first one's parameters and buffers."""
        if self.world > 1:
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
        of_ranks = gather(losses.detach()[None].float(), 0)
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


class GlobalBatchNorm(_BatchNorm):
    """`nn.BatchNorm1d`, `2d` and `3d` that normalise by the mean and variance of the whole batch in training.

    It takes `(N, C)` or `(N, C, ...)`; N may differ between ranks. In evaluation mode, and in a process
    without a group, it computes what torch's own batch norm does.
    """

    def _check_input_dim(self, inputs: Tensor) -> None:
        if inputs.dim() < 2:
            raise ValueError(f"batch norm takes (N, C, ...), got {tuple(inputs.shape)}")

    # Compiled code cannot contain the exchange between ranks.
    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def forward(self, inputs: Tensor) -> Tensor:
        """Return the normalised inputs; in training mode all ranks must call this together.

        Raises:
            ValueError: all ranks together have only one value for each channel.
        """
        if not self.training or not dist.is_initialized():
            return super().forward(inputs)
        # A sum over a batch loses too many digits in half precision.
        values = inputs if inputs.dtype == torch.float64 else inputs.float()
        dims, shape = [0, *range(2, inputs.dim())], [1, -1, *[1] * (inputs.dim() - 2)]
        count = values.new_full((1,), values.numel() // values.shape[1])
        total = _sum_over_ranks(torch.cat([values.sum(dims), count]))
        number = total[-1].detach()
        mean = total[:-1] / number
        centred = values - mean.view(shape)
        # The sum of squares would lose its digits where the mean is large.
        variance = _sum_over_ranks(centred.square().sum(dims)) / number
        self._remember(mean.detach(), variance.detach(), float(number))
        scale = (variance + self.eps).rsqrt()
        normalised = centred * (scale if self.weight is None else scale * self.weight).view(shape)
        if self.bias is not None:
            normalised = normalised + self.bias.view(shape)
        return normalised.to(inputs.dtype)

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor, number: float) -> None:
        if number <= 1:
            raise ValueError("batch norm needs more than one value for each channel in training")
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked.add_(1)
        share = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean, share)
        self.running_var.lerp_(variance * (number / (number - 1)), share)


def _summed(tensor: Tensor) -> Tensor:
    total = tensor.clone()
    with collective():
        dist.all_reduce(total)
    return total


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        return _summed(tensor)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        # A rank's term is in the sum of every rank, so the gradients of all ranks' losses add up.
        return _summed(grads[0])


def _sum_over_ranks(tensor: Tensor) -> Tensor:
    total: Tensor = _Sum.apply(tensor)
    return total


def synchronise_batch_norm(module: nn.Module, device: torch.device) -> None:
    """Replace the batch norms inside `module` by ones over all ranks; keep their parameters and states."""
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, _BatchNorm) and not isinstance(child, nn.SyncBatchNorm | GlobalBatchNorm):
                setattr(parent, name, _over_ranks(child, device))


def _over_ranks(norm: _BatchNorm, device: torch.device) -> nn.Module:
    if device.type == "cuda":
        synchronised: nn.Module = nn.SyncBatchNorm.convert_sync_batchnorm(norm)  # type: ignore[no-untyped-call]
        return synchronised
    own = GlobalBatchNorm(
        norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats, device=device
    )
    own.weight, own.bias = norm.weight, norm.bias
    own.running_mean, own.running_var = norm.running_mean, norm.running_var
    own.num_batches_tracked = norm.num_batches_tracked
    own.train(norm.training)
    return own
