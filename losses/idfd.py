"""IDFD: every image is a class of its own, and the features of a batch are decorrelated.

Tao et al. 2021, "Clustering-friendly representation learning via instance discrimination and feature
decorrelation", https://arxiv.org/abs/2106.00131; instance discrimination is that of Wu et al. 2018,
https://arxiv.org/abs/1805.01978. IDFD is the sum of both losses.
Shapes: B images in the batch, N images in all, D width.
"""

import torch
from torch import Tensor

from contrasweep.losses.scores import cosines, full_precision, logsumexp, normalised
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import Positive, require_classes


class InstanceDiscrimination(Loss):
    """`- log e^{<f_i, m_i> / t} / sum_j e^{<f_i, m_j> / t}`: image i against the memory m of all N images.

    Source: L_I of IDFD, Section 3.1. Only the features have a gradient.
    """

    temperature: Positive = 1.0

    @full_precision
    def terms(self, features: Tensor, memory: Tensor, index: Tensor) -> LossTerms:
        """B valid terms for `features` (B, D) and `memory` (N, D), which are normalised here.

        `index` (B,) are the rows of the images in the memory. Errors: ValueError on shapes.
        """
        _require_features(features)
        if memory.dim() != 2 or memory.shape[1] != features.shape[1]:
            raise ValueError(f"memory must be (N, {features.shape[1]}), got {tuple(memory.shape)}")
        index = require_classes("index", index, len(features), len(memory))
        scores = (normalised(features) / self.temperature) @ normalised(memory.detach()).T
        return LossTerms.all_valid(logsumexp(scores) - scores.gather(1, index[:, None])[:, 0])


class FeatureDecorrelation(Loss):
    """`- log e^{<c_l, c_l> / t} / sum_m e^{<c_l, c_m> / t}` for each of the D features l.

    c_l (B,) is column l of the normalised embeddings of the batch, normalised in turn. The loss is the mean
    over features, as in the released code; the paper sums. Source: L_F of IDFD, Section 3.2.
    """

    temperature: Positive = 2.0

    @full_precision
    def terms(self, features: Tensor) -> LossTerms:
        """D valid terms for `features` (B, D). Errors: ValueError on shapes."""
        _require_features(features)
        scores = cosines(normalised(normalised(features).T)) / self.temperature
        return LossTerms.all_valid(logsumexp(scores) - scores.diagonal())


def _require_features(features: Tensor) -> None:
    if features.dim() != 2 or not features.is_floating_point() or torch.numel(features) == 0:
        raise ValueError(
            "features must be a floating point tensor of shape (B images, D features), none of them 0, "
            f"got {features.dtype} of shape {tuple(features.shape)}"
        )
