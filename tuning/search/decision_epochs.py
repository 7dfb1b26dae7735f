"""The epochs at which a search by learning curves decides about a trial.

The module has no other content, because the model of the curves imports slowly.
"""

import math
from typing import Final

EPOCHS: Final = "epochs"
"""The attribute of a study that holds how long its trials are."""
WARMUP: Final = "warmup"
"""The attribute of a study that holds during how many epochs the learning rate rises."""


def decision_epochs(epochs: int, warmup: float = 0.0) -> tuple[int, ...]:
    """Return the epochs after which a trial is stopped or goes on: each twice as late as the last.

    The first is the one after the warmup: while the learning rate rises, small rates lead.
    """
    found, epoch = [], math.ceil(warmup) + 1
    while epoch < epochs:
        found.append(epoch)
        epoch *= 2
    return tuple(found)
