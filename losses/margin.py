"""L-Softmax: the class's own logit needs an angle that is smaller by a whole factor.

Source: Liu et al. 2016, "Large-margin softmax loss for convolutional neural networks" (ICML),
https://arxiv.org/abs/1612.02295, Eq. 4-6.
Shapes: N anchors, D width, C classes.
"""

import math

import torch
from torch import Tensor, nn

from contrasweep.losses.scores import full_precision
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import NON_NEGATIVE, Count, require_classes


class LargeMarginSoftmax(Loss):
    """Cross-entropy in which the logit of an anchor's class is `|w||x| psi(theta)`, not `|w||x| cos theta`.

    `psi(theta) = (-1)^k cos(m theta) - 2k` for theta in [k pi / m, (k + 1) pi / m] falls from 1 to 1 - 2m;
    m is the `margin`, and 1 is plain cross-entropy.
    """

    margin: Count

    @full_precision
    def terms(self, features: Tensor, weight: Tensor, labels: Tensor, lam: float = 0.0) -> LossTerms:
        """N valid terms for `features` (N, D), the classifier's `weight` (C, D) and integer `labels` (N,).

        The class's logit is the mean of the plain one, with the weight `lam` (0 or more), and of the one with
        the margin, with the weight 1: a large `lam` lets training begin.

        Errors: ValueError on shapes, and on a negative `lam`.
        """
        if features.dim() != 2 or weight.dim() != 2 or features.shape[1] != weight.shape[1]:
            given = f"{tuple(features.shape)} and {tuple(weight.shape)}"
            raise ValueError(f"features must be (N, D) and weight (C, D), got {given}")
        NON_NEGATIVE.check("lam", lam)
        labels = require_classes("labels", labels, len(features), len(weight))
        logits = features @ weight.to(features.dtype).T
        own = labels[:, None]
        plain = logits.gather(1, own)[:, 0]
        length = features.norm(dim=1) * weight.to(features.dtype).norm(dim=1)[labels]
        cosine = plain / length.masked_fill(length == 0, 1)
        with_margin = length * self._psi(cosine)
        mixed = (lam * plain + with_margin) / (1 + lam)
        logits = logits.scatter(1, own, mixed[:, None])
        return LossTerms.all_valid(nn.functional.cross_entropy(logits, labels, reduction="none"))

    def _psi(self, cosine: Tensor) -> Tensor:
        """Return psi of the angles whose cosines (N,) are given.

        cos(m theta) is the Chebyshev polynomial T_m of cos theta: unlike the arc cosine, it has a finite
        gradient at 0 and pi.
        """
        bounded = cosine.clamp(-1, 1)
        k = (bounded.detach().acos() * self.margin / math.pi).floor().clamp(max=self.margin - 1)
        before, power = torch.ones_like(bounded), bounded
        for _ in range(self.margin - 1):
            before, power = power, 2 * bounded * power - before
        return (1 - 2 * (k % 2)) * power - 2 * k
