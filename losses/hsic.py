"""The Hilbert-Schmidt independence criterion (HSIC) of two networks' features of the same images.

ReBias: Bahng et al. 2020, "Learning de-biased representations with biased representations",
https://arxiv.org/abs/1910.02806. Shapes: B images, D and E widths.
"""

import torch
from torch import Tensor

from contrasweep.losses.kernels import squared_distances
from contrasweep.losses.scores import full_precision
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import Positive

FEWEST_IMAGES = 4


class HSIC(Loss):
    """The unbiased estimate HSIC_1 (Song et al. 2012) with Gaussian kernels `exp(-|x - x'|^2 / (2 sigma^2))`.

    It is 0 in the mean for independent features, and can be negative. A gradient flows to both inputs:
    detach the one that should stay. Features are taken as they are, not normalised.

    Source: ReBias, section 3; criterions/hsic.py of its released code, whose sigma_x and sigma_y these are.
    The released code subtracts the kernel's diagonal from every entry in place of setting it to 0; a constant
    beside the diagonal changes nothing, so the values are the same.
    """

    sigma: Positive = 1.0
    biased_sigma: Positive = 1.0

    @full_precision
    def terms(self, features: Tensor, biased_features: Tensor) -> LossTerms:
        """One term for `features` (B, D) and `biased_features` (B, E), B at least 4. Errors: ValueError."""
        images = len(features)
        if features.dim() != 2 or biased_features.dim() != 2 or len(biased_features) != images:
            given = f"{tuple(features.shape)} and {tuple(biased_features.shape)}"
            raise ValueError(f"features must be (B, D) and biased_features (B, E), got {given}")
        if images < FEWEST_IMAGES:
            raise ValueError(f"HSIC needs at least {FEWEST_IMAGES} images, got {images}")
        K, L = _centred(features, self.sigma), _centred(biased_features, self.biased_sigma)
        # With both means at 0, the estimate's middle term is 0.
        value = (K * L).sum() - 2 / (images - 2) * (K.sum(0) * L.sum(0)).sum()
        return LossTerms.all_valid(value.to(features.dtype)[None] / (images * (images - 3)))


def median_distance(features: Tensor) -> float:
    """The median Euclidean distance of two different rows of `features` (B, D), at least 1e-6; NaN of NaN.

    Errors: ValueError, for fewer than two rows.

    Source: ReBias, criterions/sigma_utils.py of its released code, which counts a row with itself too.
    """
    if features.dim() != 2 or len(features) < 2:
        raise ValueError(f"a distance needs features (B, D) with B >= 2, got {tuple(features.shape)}")
    # In this order NaN stays NaN.
    return max(float(torch.pdist(features.float()).median()), 1e-6)


def _centred(features: Tensor, sigma: float) -> Tensor:
    """The kernel matrix (B, B) with 0 on its diagonal and, beside it, entries whose mean is 0.

    It is in float64: features far from each other leave no digit of a small distance in float32.
    """
    images = len(features)
    kernel = torch.exp(squared_distances(features.double()) / (-2 * sigma**2))
    apart = 1 - torch.eye(images, dtype=kernel.dtype, device=kernel.device)
    mean = (kernel * apart).sum() / (images * (images - 1))
    return (kernel - mean) * apart
