"""What the debiasing methods share: the bias label, which resolving has checked."""

from torch import Tensor

from tuning.training.objective import Batch


def bias_of(batch: Batch) -> Tensor:
    """Return the bias labels `(B,)` of a batch whose method needs them."""
    assert batch.bias is not None, "checked when the experiment was resolved"
    return batch.bias
