"""Learning against a predictor of the bias: gradient reversal, and the entropy of the predictions.

Sources: Kim et al. 2019, "Learning not to learn: training deep neural networks with biased data",
https://arxiv.org/abs/1812.10352; the reversal is that of Ganin and Lempitsky 2015, "Unsupervised domain
adaptation by backpropagation", https://arxiv.org/abs/1409.7495.
"""

from typing import Any

import torch
from torch import Tensor, nn

from contrasweep.losses.scores import full_precision


def reverse_gradient(x: Tensor, scale: float) -> Tensor:
    """Return `x`; the gradient that comes back is multiplied by `-scale`."""
    reversed_: Tensor = _Reversed.apply(x, scale)
    return reversed_


@full_precision
def negative_entropy(logits: Tensor) -> Tensor:
    """Return the mean over rows of `sum_k p_k log p_k`, in nats, of `p = softmax(logits)`, `logits` (N, K).

    It is -log K where all predictions are uniform, and 0 where they are certain.
    """
    log_shares = nn.functional.log_softmax(logits, dim=1)
    return (log_shares.exp() * log_shares).sum(1).mean()


class _Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: float) -> Tensor:
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0] * -ctx.scale, None
