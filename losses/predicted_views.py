"""BYOL and SimSiam: a predictor's output for one view agrees with the embedding of the other view.

Grill et al. 2020, "Bootstrap your own latent", https://arxiv.org/abs/2006.07733, Eq. 2.
Chen and He 2021, "Exploring simple Siamese representation learning", https://arxiv.org/abs/2011.10566, Eq. 1
and 2. No image repels another: what keeps the embeddings apart is that the target has no gradient.
Shapes: B images, D width.
"""

import torch
from torch import Tensor

from contrasweep.losses.scores import full_precision, normalised
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import require_views


class BYOL(Loss):
    """`|p_x - z_y|^2 + |p_y - z_x|^2` for each image, where all vectors have the length 1.

    p are predictions from the online network, z projections of the momentum network, x and y the two views.
    A square is `2 - 2 cos`.
    The sum of both directions is the symmetric loss of Section 3.1.
    """

    @full_precision
    def terms(self, predictions: Tensor, targets: Tensor) -> LossTerms:
        """B valid terms for `predictions` and `targets` (2, B, D), both views in the same order.

        Targets are used without gradient. Errors: ValueError on shapes.
        """
        return LossTerms.all_valid((2 - 2 * _agreements(predictions, targets)).sum(0))


class SimSiam(Loss):
    """`-cos(p_x, z_y) / 2 - cos(p_y, z_x) / 2` for each image: Eq. 1 and 2.

    p are predictions, z the projections that they are made from, x and y the two views.
    """

    @full_precision
    def terms(self, predictions: Tensor, targets: Tensor) -> LossTerms:
        """B valid terms for `predictions` and `targets` (2, B, D), both views in the same order.

        Targets are used without gradient. Errors: ValueError on shapes.
        """
        return LossTerms.all_valid(-_agreements(predictions, targets).mean(0))


def _agreements(predictions: Tensor, targets: Tensor) -> Tensor:
    """Return the cosines (2, B) of each view's predictions with the other view's targets."""
    require_views(predictions, exactly=2)
    if targets.shape != predictions.shape:
        given = f"{tuple(predictions.shape)} and {tuple(targets.shape)}"
        raise ValueError(f"predictions and targets must have one shape, got {given}")
    others = targets.detach().flip(0)
    cosines: Tensor = torch.linalg.vecdot(normalised(predictions), normalised(others))
    return cosines
