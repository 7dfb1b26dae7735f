"""Barlow Twins: the correlations of two views' features are the identity matrix.

Zbontar et al. 2021, "Barlow Twins: self-supervised learning via redundancy reduction",
https://arxiv.org/abs/2103.03230, Eq. 1 and 2. Shapes: B images, D features.
"""

from torch import Tensor
from torch.nn import functional

from contrasweep.losses.scores import full_precision, without_diagonal
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import NonNegative, require_views

EPSILON = 1e-5
"""Added to a feature's variance, as torch's batch norm has it by default."""


class BarlowTwins(Loss):
    """`sum_i (1 - C_ii)^2 + lam sum_i sum_{j != i} C_ij^2`, with C the cross-correlations of two views.

    A term belongs to a feature i: its own correlation between the views, and its correlations with the other
    features. A call returns their sum, as in Eq. 1. Features are standardised over the batch, each view by
    itself, with the variance of the population: a batch norm without affine part, as in the released code.

    The sum grows with D for the first part and with D(D - 1) for the second, so a useful `lam` and learning
    rate depend on the width of the embedding.
    """

    lam: NonNegative = 0.0051
    sums_terms = True

    @full_precision
    def terms(self, views: Tensor) -> LossTerms:
        """D valid terms for `views` (V, B, D), V = 2 and B at least 2. Errors: ValueError on shapes."""
        require_views(views, exactly=2, images=2)
        x, y = (functional.batch_norm(view, None, None, training=True, eps=EPSILON) for view in views)
        correlations = x.T @ y / len(x)
        own, others = correlations.diagonal(), without_diagonal(correlations)
        return LossTerms.all_valid((1 - own).square() + self.lam * others.square().sum(1))
