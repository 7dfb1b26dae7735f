"""C2AE, the canonical-correlated autoencoder: codes of features and labels, and a ranking of labels.

Yeh et al. 2017, "Learning deep latent spaces for multi-label classification",
https://arxiv.org/abs/1707.00418: `Phi(F_x, F_e) + alpha Gamma(F_e, F_d)`. Its two parts are losses.
Shapes: n objects, K width of a code, c labels.
"""

import torch
from torch import Tensor

from contrasweep.losses.scores import full_precision, logsumexp
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import NonNegative, Positive, extremes


class CanonicalCorrelation(Loss):
    """Phi: `|X - E|^2 + lam (|X'X - I|^2 + |E'E - I|^2)`, for the codes X of features and E of labels.

    It is deep canonical correlation analysis with its constraints X'X = E'E = I as penalties (Frobenius
    norms). A call returns the sum of its three terms, which are sums over the batch. `lam` is 0.5 in the
    authors' released code (CORR_error.m).
    """

    lam: NonNegative = 0.5
    sums_terms = True

    @full_precision
    def terms(self, features: Tensor, codes: Tensor) -> LossTerms:
        """Three valid terms for the codes of `features` and of labels, `codes`, both (n, K)."""
        if features.dim() != 2 or codes.shape != features.shape:
            shapes = f"{tuple(features.shape)} and {tuple(codes.shape)}"
            raise ValueError(f"features and codes must be (n, K), got {shapes}")
        unit = torch.eye(features.shape[1], dtype=features.dtype, device=features.device)
        penalties = [self.lam * (z.T @ z - unit).square().sum() for z in (features, codes)]
        return LossTerms.all_valid(torch.stack([(features - codes).square().sum(), *penalties]))


class LabelRanking(Loss):
    """Gamma: an object's labels score above those that it does not have, one term for each object.

    `1 / (scale |P| |N|) sum_{p in P, q in N} e^{-scale (s_p - s_q)}` over the labels P that the object has
    and the labels N that it has not; an object without one or the other is invalid. A call returns the sum
    over objects. `scale=1` is the paper's form. The gradient at `scale=5` is that of the authors' released
    code (BR_error.m), which has the 5 in the exponent and leaves it out of the derivative.
    """

    scale: Positive = 1.0
    sums_terms = True

    @full_precision
    def terms(self, scores: Tensor, labels: Tensor) -> LossTerms:
        """Terms (n,) for `scores` (n, c) and `labels` (n, c) of 0 and 1. Errors: ValueError on others."""
        if scores.dim() != 2 or labels.shape != scores.shape:
            shapes = f"{tuple(scores.shape)} and {tuple(labels.shape)}"
            raise ValueError(f"scores and labels must be (n, c), got {shapes}")
        found = extremes(labels)
        if found is not None and not (set(found) <= {0, 1}):
            raise ValueError(f"labels must be 0 or 1, got {found[0]:g}..{found[1]:g}")
        held = labels > 0
        count = held.sum(1)
        valid = (count > 0) & (count < labels.shape[1])
        # The sum over pairs is a product of two sums.
        of_held = logsumexp((-self.scale * scores).masked_fill(~held, -torch.inf))
        of_others = logsumexp((self.scale * scores).masked_fill(held, -torch.inf))
        pairs = (count * (labels.shape[1] - count)).clamp_min(1)
        logs = (of_held + of_others).masked_fill(~valid, 0) - pairs.to(scores.dtype).log()
        return LossTerms(logs.exp() / self.scale, valid)
