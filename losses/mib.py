"""The multi-view information bottleneck: two views' codes share information, and hold little else.

Federici et al. 2020, "Learning robust representations via multi-view information bottleneck",
https://arxiv.org/abs/2002.07017, L_MIB: `-I(z_1; z_2) + beta D_SKL(p(z_1|v_1) || p(z_2|v_2))`. Here the
two parts are losses of their own. Shapes: B objects, D width of a code.
"""

from typing import Annotated

import torch
from torch import Tensor, nn

from contrasweep.losses.scores import full_precision, softplus
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import Count, require_positive, require_views
from contrasweep.rules import OneOf

DIVERGENCES = ("sampled", "exact")


class JensenShannon(Loss):
    """The negative Jensen-Shannon estimate of the information that the codes of two views share.

    `softplus(-T(z_i1, z_i2)) + softplus(T(z_j1, z_i2))`, where j is the object before i in the batch (for the
    first, the last) and T a learned network, `2 dim - hidden - hidden - 1` with ReLU. At T = 0 the value is
    2 log 2. Source: the authors' released code, utils/modules.py, the class MIEstimator (`hidden` 1,024).
    """

    dim: Count
    hidden: Count = 1024

    def __post_init__(self) -> None:
        super().__post_init__()
        self.net = nn.Sequential(
            nn.Linear(2 * self.dim, self.hidden),
            nn.ReLU(),
            nn.Linear(self.hidden, self.hidden),
            nn.ReLU(),
            nn.Linear(self.hidden, 1),
        )

    @full_precision
    def terms(self, views: Tensor) -> LossTerms:
        """B valid terms for the codes `views` (2, B, dim). Errors: ValueError on shapes."""
        require_views(views, exactly=2)
        if views.shape[2] != self.dim:
            raise ValueError(f"views must have width {self.dim}, got shape {tuple(views.shape)}")
        one, other = views
        pairs = torch.cat([torch.cat([one, other], 1), torch.cat([one.roll(1, 0), other], 1)])
        # The network may have been made half precision with its encoder.
        own = next(self.net.parameters()).dtype
        scored = self.net(pairs.to(own))[:, 0].to(pairs.dtype)
        together, apart = scored.chunk(2)
        return LossTerms.all_valid(softplus(-together) + softplus(apart))


class SymmetricKL(Loss):
    """`1/2 KL(p_1 || p_2) + 1/2 KL(p_2 || p_1)` of two views' normal distributions, with diagonal covariance.

    `form="exact"` is the closed form. `"sampled"`, as in the released code (training/mib.py), estimates it
    from one sample of each: `1/2 (log p_1(z_1)/p_2(z_1) + log p_2(z_2)/p_1(z_2))`, which has the same mean.
    """

    form: Annotated[str, OneOf(DIVERGENCES)] = "sampled"

    @full_precision
    def terms(self, means: Tensor, deviations: Tensor, noise: Tensor) -> LossTerms:
        """B valid terms for `means` and `deviations` (2, B, D), the latter above 0.

        `noise` (2, B, D), standard normal, makes the samples; `"exact"` does not read it. Errors: ValueError
        on shapes, and on other deviations (on a CPU).
        """
        require_views(means, exactly=2)
        if not means.shape == deviations.shape == noise.shape:
            shapes = f"{tuple(means.shape)}, {tuple(deviations.shape)} and {tuple(noise.shape)}"
            raise ValueError(f"means, deviations and noise must have one shape, got {shapes}")
        require_positive("deviations", deviations)
        apart = means[0] - means[1]
        if self.form == "exact":
            ratios = (deviations / deviations.flip(0)).square().sum(0)
            distances = (apart.square() * deviations.square().reciprocal().sum(0)) + ratios - 2
            return LossTerms.all_valid(distances.sum(1) / 4)
        # The logarithms of the deviations cancel between the two samples.
        away = torch.stack([apart, -apart]) + deviations * noise
        distances = (away / deviations.flip(0)).square() - noise.square()
        return LossTerms.all_valid(distances.sum((0, 2)) / 4)
