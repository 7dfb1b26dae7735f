"""What CUDA's kernels do not do and a CPU's do: products of whole numbers, some deterministic algorithms."""

from typing import Any

import torch
from torch import Tensor

OF_FLOATS = frozenset(
    {
        *("mm", "bmm", "addmm", "baddbmm", "mv", "addmv", "dot", "convolution"),
        *(f"upsample_{mode}" for mode in ("linear1d", "bilinear2d", "bicubic2d", "trilinear3d")),
        *("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", "grid_sampler_2d", "grid_sampler_3d"),
    }
)
"""Operations that CUDA has for floating types alone."""

IN_ANY_ORDER = frozenset(
    {
        *("_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward", "adaptive_max_pool2d_backward"),
        *("fractional_max_pool2d_backward", "fractional_max_pool3d_backward", "avg_pool3d_backward"),
        *("max_unpool2d", "max_unpool3d", "nll_loss2d_forward", "nll_loss2d_backward", "_ctc_loss_backward"),
        *(f"upsample_{mode}_backward" for mode in ("linear1d", "bilinear2d", "bicubic2d", "trilinear3d")),
        *("_upsample_bilinear2d_aa_backward", "_upsample_bicubic2d_aa_backward"),
        *("grid_sampler_2d_backward", "grid_sampler_3d_backward", "put_", "histc"),
        *(f"reflection_pad{dimensions}d_backward" for dimensions in (1, 2, 3)),
    }
)
"""Operations without a deterministic kernel on CUDA.

Source: torch's documentation of `use_deterministic_algorithms`, and the alerts in the library of torch 2.15.
"""


def refuse_what_cuda_lacks(name: str, args: tuple[Any, ...]) -> None:
    """Raise what CUDA's kernel raises for these arguments.

    Raises:
        NotImplementedError: it does not take the type of the numbers.
        RuntimeError: a deterministic algorithm is asked for, and there is none.
    """
    first = args[0] if args else None
    if name.rstrip("_") in OF_FLOATS and isinstance(first, Tensor) and not first.is_floating_point():
        raise NotImplementedError(f"{name}: CUDA has no kernel for {first.dtype}")
    if torch.are_deterministic_algorithms_enabled() and _in_any_order(name, args):
        raise RuntimeError(f"{name} does not have a deterministic implementation on CUDA")


def _in_any_order(name: str, args: tuple[Any, ...]) -> bool:
    weighted = name == "bincount" and len(args) > 1 and args[1] is not None
    indexed = name in ("median", "nanmedian") and len(args) > 1
    multiplied = name in ("scatter_reduce", "scatter_reduce_") and "prod" in args
    return name in IN_ANY_ORDER or weighted or indexed or multiplied
