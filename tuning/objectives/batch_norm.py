"""Batch norm over the images of all ranks, so that a run's numbers do not depend on the number of ranks.

torch's `SyncBatchNorm` does this on a GPU. It does not run on a CPU; there `GlobalBatchNorm` does the same.
"""

from functools import cache
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from contrasweep.losses.gather import collective
from contrasweep.losses.synchronisation import reading_synchronises
from contrasweep.tuning.errors import InputError


class GlobalBatchNorm(_BatchNorm):
    """`nn.BatchNorm1d`, `2d` and `3d` that normalise by the mean and variance of the whole batch in training.

    It takes `(N, C)` or `(N, C, ...)`; N may differ between ranks. In evaluation mode, and in a process
    without a group, it computes what torch's own batch norm does.
    """

    def _check_input_dim(self, inputs: Tensor) -> None:
        if inputs.dim() < 2:
            raise ValueError(f"batch norm takes (N, C, ...), got {tuple(inputs.shape)}")

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the normalised inputs; in training mode all ranks must call this together.

        Raises:
            ValueError: all ranks together have only one value for each channel (on a CPU; elsewhere the
                running variance is then NaN).
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
        self._remember(mean.detach(), variance.detach(), number)
        scale = (variance + self.eps).rsqrt()
        normalised = centred * (scale if self.weight is None else scale * self.weight).view(shape)
        if self.bias is not None:
            normalised = normalised + self.bias.view(shape)
        return normalised.to(inputs.dtype)

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor, number: Tensor) -> None:
        if not reading_synchronises(number) and number <= 1:
            raise ValueError("batch norm needs more than one value for each channel in training")
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked.add_(1)
        share: Any = 1 / self.num_batches_tracked.to(mean.dtype) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean, share)
        self.running_var.lerp_(variance * (number / (number - 1)), share)


@cache
def _outside_compiled_code() -> type[GlobalBatchNorm]:
    """Return the batch norm for compiled backbones: their code cannot contain the exchange between ranks.

    The class is made where it is needed, because `torch.compiler.disable` imports torch's compiler, which
    takes a second.
    """

    class Outside(GlobalBatchNorm):
        forward = torch.compiler.disable(GlobalBatchNorm.forward)  # type: ignore[no-untyped-call]

    return Outside


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


def synchronise_batch_norm(module: nn.Module, device: torch.device, compiled: bool = False) -> None:
    """Replace the batch norms inside `module` by ones over all ranks; keep their parameters and states.

    Args:
        module: the network, changed in place.
        device: the device of the network.
        compiled: whether torch compiles parts of the network.

    Raises:
        InputError: a layer keeps statistics of its batch and is no batch norm that is known here.
    """
    kind = _outside_compiled_code() if compiled else GlobalBatchNorm
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.SyncBatchNorm | GlobalBatchNorm):
                continue
            if isinstance(child, _BatchNorm):
                setattr(parent, name, _over_ranks(child, device, kind))
            elif getattr(child, "running_var", None) is not None:
                raise _unknown_norm(child)


def _over_ranks(norm: _BatchNorm, device: torch.device, kind: type[GlobalBatchNorm]) -> nn.Module:
    over = _plain_over_ranks(norm, device, kind)
    if type(norm).forward is _BatchNorm.forward:
        return over
    # timm has batch norms that drop something and apply an activation afterwards.
    if not all(isinstance(getattr(norm, part, None), nn.Module) for part in ("drop", "act")):
        raise _unknown_norm(norm)
    over.drop, over.act = norm.drop, norm.act
    over.register_forward_hook(_activated)
    return over


def _activated(norm: nn.Module, _: tuple[Any, ...], outputs: Tensor) -> Tensor:
    activated: Tensor = norm.get_submodule("act")(norm.get_submodule("drop")(outputs))
    return activated


def _unknown_norm(norm: nn.Module) -> InputError:
    return InputError(
        f"{type(norm).__name__} normalises by the images of one worker: train with --workers 1, or take "
        "another encoder"
    )


def _plain_over_ranks(norm: _BatchNorm, device: torch.device, kind: type[GlobalBatchNorm]) -> nn.Module:
    if device.type == "cuda":
        synchronised: nn.Module = nn.SyncBatchNorm.convert_sync_batchnorm(norm)  # type: ignore[no-untyped-call]
        return synchronised
    own = kind(
        norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats, device=device
    )
    own.weight, own.bias = norm.weight, norm.bias
    own.running_mean, own.running_var = norm.running_mean, norm.running_var
    own.num_batches_tracked = norm.num_batches_tracked
    own.train(norm.training)
    return own
