"""A linear probe, and the first steps of every fit: the checks and the standardisation of features."""

from dataclasses import dataclass

import torch
from torch import Tensor


class NonFiniteFeatures(ValueError):
    """The features hold NaN or Inf, because their encoder has diverged."""


@dataclass(frozen=True)
class LinearProbe:
    """A fitted linear map on raw features: `weight (D, K)` and `bias (K,)`."""

    weight: Tensor
    bias: Tensor

    def __call__(self, features: Tensor) -> Tensor:
        """Return the outputs `(N, K)` for `features` `(N, D)`."""
        return features @ self.weight + self.bias


def require_samples(features: Tensor, targets: int) -> None:
    """Raise ValueError unless `features` are finite, `(N, D)` with N >= 1, and there are N `targets`."""
    if features.ndim != 2 or features.shape[0] == 0 or features.shape[0] != targets:
        raise ValueError(
            f"a probe needs features (N, D), N >= 1, and N targets; got {tuple(features.shape)}, {targets}"
        )
    if not bool(torch.isfinite(features).all()):
        raise NonFiniteFeatures("features hold NaN or Inf: the encoder diverged")


def require_labels(labels: Tensor, classes: int) -> None:
    """Raise ValueError unless `labels` are integers `(N,)` in `[0, classes)`."""
    if labels.ndim != 1 or labels.is_floating_point():
        raise ValueError(f"labels must be integers (N,), got {labels.dtype} {tuple(labels.shape)}")
    low, high = (int(value) for value in torch.aminmax(labels))
    if low < 0 or high >= classes:
        raise ValueError(f"labels must lie in 0..{classes - 1}, got {low}..{high}")


def standardised(features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return features `(N, D)` with mean 0 and deviation 1, and the shift and scale `(D,)` that were used."""
    shift = features.mean(dim=0)
    spread = features.std(dim=0, correction=0)
    # A constant feature carries no information; scale 1 makes it zero and avoids a division by zero.
    scale = torch.where(spread > 1e-6 * spread.max().clamp_min(1e-30), spread, torch.ones_like(spread))
    return (features - shift) / scale, shift, scale


def weight_penalties(penalty: float, scale: Tensor, standardise: bool) -> Tensor:
    """Return the penalty on each standardised weight `(D,)`; a raw weight is that weight over the scale."""
    return torch.full_like(scale, penalty) if standardise else penalty / scale.square()


def on_raw_features(weight: Tensor, bias: Tensor, shift: Tensor, scale: Tensor) -> LinearProbe:
    """Return the probe on raw features that equals `weight` and `bias` on standardised features."""
    raw = weight / scale[:, None]
    return LinearProbe(raw, bias - shift @ raw)
