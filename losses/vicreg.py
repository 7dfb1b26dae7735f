"""VICReg: two views' features agree, each feature varies over the batch, and no two features covary.

Bardes et al. 2022, "VICReg: variance-invariance-covariance regularization for self-supervised learning",
https://arxiv.org/abs/2105.04906, Eq. 1-6. Shapes: V views, B images, D features.
"""

from typing import Annotated

from torch import Tensor

from contrasweep.losses.scores import full_precision, without_diagonal
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import NonNegative, require_views
from contrasweep.rules import OneOf

FORMS = ("released", "paper")
DEVIATION, EPSILON = 1.0, 1e-4
"""The smallest standard deviation that costs nothing (gamma of Eq. 1), and what is added to a variance."""


class VICReg(Loss):
    """`invariance_weight s + variance_weight v + covariance_weight c`, Eq. 6, the mean of D terms.

    The term of a feature has three parts: the mean over images of its squared difference between the views;
    `max(0, 1 - sqrt(variance + 1e-4))` of each view (Eq. 1 and 2); and, of each view, the sum of its squared
    covariances with the other features (Eq. 3 and 4, whose factor 1/D is the mean over terms). Variances and
    covariances divide by B - 1.

    Attributes:
        form: `released` as the published code: s is the mean over features, v is halved. `paper` as Eq. 5 and
            6: s is the sum over features, and v the sum over views. A weight of one form therefore acts in
            the other as D times, or half, its value. The coefficients 25, 25 and 1 belong to `released`.
    """

    invariance_weight: NonNegative = 25.0
    variance_weight: NonNegative = 25.0
    covariance_weight: NonNegative = 1.0
    form: Annotated[str, OneOf(FORMS)] = "released"

    @full_precision
    def terms(self, views: Tensor) -> LossTerms:
        """D valid terms for `views` (V, B, D), V = 2 and B at least 2. Errors: ValueError on shapes."""
        require_views(views, exactly=2, images=2)
        invariance = (views[0] - views[1]).square().mean(0)
        variance = sum((DEVIATION - (view.var(0) + EPSILON).sqrt()).relu() for view in views)
        covariance = sum(_covariances(view) for view in views)
        if self.form == "released":
            variance = variance / 2
        else:
            invariance = invariance * views.shape[2]
        return LossTerms.all_valid(
            self.invariance_weight * invariance
            + self.variance_weight * variance
            + self.covariance_weight * covariance
        )


def _covariances(view: Tensor) -> Tensor:
    """Return the sum (D,) of each feature's squared covariances with the others, for a view (B, D)."""
    centred = view - view.mean(0)
    return without_diagonal(centred.T @ centred / (len(view) - 1)).square().sum(1)
