"""What the debiasing methods share: one view an image, and the bias label that resolving has checked."""

from torch import Tensor

from tuning.config import Experiment
from tuning.training.feeds import Feed, image_feed
from tuning.training.objective import Batch
from tuning.training.prepared import PreparedData


def single_view(experiment: Experiment, data: PreparedData) -> Feed:
    """Return uniform batches with one view of each image."""
    return image_feed(experiment, data, views=1)


def bias_of(batch: Batch) -> Tensor:
    """Return the bias labels `(B,)` of a batch whose method needs them."""
    assert batch.bias is not None, "checked when the experiment was resolved"
    return batch.bias
