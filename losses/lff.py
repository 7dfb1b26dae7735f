"""Learning from failure: the loss of the network that learns the bias, and what its failures say of an image.

LfF: Nam et al. 2020, "Learning from failure: training debiased classifier from biased classifier",
https://arxiv.org/abs/2007.02561. Shapes: B images, C classes.
"""

from typing import Annotated

import torch
from torch import Tensor, nn

from contrasweep.losses.scores import full_precision
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import require_classes
from contrasweep.rules import Number, OneOf

RELEASED_CONSTANT = 1e-8


class GeneralizedCrossEntropy(Loss):
    """`(1 - p^q) / q` for the probability p of the right class: images that are learned early weigh most.

    Its gradient is that of cross-entropy times `p^q` (Zhang and Sabuncu 2018). `form="released"` is LfF's
    code, cross-entropy times the constant `q p^q`: another value, and q times that gradient. With Adam the
    factor q hardly matters; beside another loss it does.
    """

    q: Annotated[float, Number(above=0, at_most=1)] = 0.7
    form: Annotated[str, OneOf(("paper", "released"))] = "paper"

    @full_precision
    def terms(self, logits: Tensor, labels: Tensor) -> LossTerms:
        """B valid terms for `logits` (B, C) and integer `labels` (B,). Errors: ValueError on shapes."""
        require_logits(logits, labels)
        surprise = nn.functional.cross_entropy(logits, labels.long(), reduction="none")
        if self.form == "released":
            return LossTerms.all_valid(surprise * self.q * torch.exp(-self.q * surprise.detach()))
        return LossTerms.all_valid(-torch.expm1(-self.q * surprise) / self.q)


@full_precision
def relative_difficulty(biased: Tensor, debiased: Tensor) -> Tensor:
    """`W = biased / (biased + debiased)` from the losses (B,) of the two networks, in [0, 1].

    It is near 1 for an image that the biased network fails on and the other knows. The released code adds
    1e-8 to the denominator, and so does this: two losses of 0 give 0.

    Source: LfF, Algorithm 1; DFA (Lee et al. 2021), Eq. 1.
    """
    return biased / (biased + debiased + RELEASED_CONSTANT)


def require_logits(logits: Tensor, labels: Tensor, **same_shape: Tensor) -> None:
    """Check logits: floating point (B, C), as each of `same_shape` is; and labels (B,), on a CPU 0..C-1."""
    if logits.dim() != 2 or not logits.is_floating_point():
        given = f"{logits.dtype} of shape {tuple(logits.shape)}"
        raise ValueError(f"logits must be a floating point tensor of shape (B, C), got {given}")
    for name, values in same_shape.items():
        if values.shape != logits.shape:
            given = f"{tuple(values.shape)} and {tuple(logits.shape)}"
            raise ValueError(f"{name} must have the shape of logits, got {given}")
    require_classes("labels", labels, len(logits), logits.shape[1])
