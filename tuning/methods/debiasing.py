"""What the debiasing methods share: the bias, as a label or as features, which resolving has checked."""

from torch import Tensor
from torch.nn import functional

from contrasweep.tuning.objectives.objective import Batch


def bias_of(batch: Batch) -> Tensor:
    """Return the bias labels `(B,)` of a batch whose method needs them."""
    assert batch.bias is not None, "checked when the experiment was resolved"
    return batch.bias


def bias_similarity(batch: Batch) -> Tensor:
    """Return how alike the bias features of a batch's images are `(B, B)`, 0..1: their cosines, 0 if below.

    The features are the condition. Source: Barbano et al. 2023, section B.2.4, where they are those of a
    network that captures the bias, and never negative.
    """
    assert batch.condition is not None, "checked when the experiment was resolved"
    directions = functional.normalize(batch.condition.float(), dim=1)
    return (directions @ directions.T).clamp(0.0, 1.0)
