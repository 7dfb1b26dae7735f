"""Networks on torch's meta device: the shapes of inputs and outputs are known, and no memory is allocated."""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn

Network = TypeVar("Network", bound=nn.Module)


def on_meta_device(build: Callable[[], Network]) -> Network:
    """Return the network that `build()` returns, in evaluation mode, on torch's meta device."""
    with torch.random.fork_rng(devices=[]):
        try:
            with torch.device("meta"):
                return build().eval()
        except RuntimeError as error:
            # Some networks compute widths or rates with tensors, which need numbers.
            if "meta" not in str(error):
                raise
            with torch.device("cpu"):  # also where the caller itself builds without memory
                return build().to("meta").eval()


def outputs_of(network: nn.Module, channels: int, image_size: int) -> Tensor:
    """Return the output of a network on the meta device for one image: a shape without values.

    Raises:
        ValueError: it does not take images `(channels, image_size, image_size)`.
    """
    try:
        outputs = network(torch.zeros(1, channels, image_size, image_size, device="meta"))
    except (ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(" ".join(str(error).split()) or type(error).__name__) from error
    if not isinstance(outputs, Tensor):
        raise ValueError(  # noqa: TRY004 - the network is what the user gave
            f"it gives {type(outputs).__name__}, not a tensor of features"
        )
    return outputs
