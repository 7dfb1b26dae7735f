"""InfoNCE: two views of an image attract, the other images of the batch repel (SimCLR's NT-Xent)."""

from contrasweep.losses import InfoNCE
from contrasweep.tuning.methods.loss_method import loss_method
from contrasweep.tuning.methods.method import TEMPERATURE

HYPERPARAMETERS = {
    "temperature": TEMPERATURE,
    "negatives": "which other views repel: of the other view only, or of both",
}

METHOD = loss_method(
    InfoNCE,
    name="infonce",
    summary="two views of an image attract, all other images repel",
    paper="van den Oord et al. 2018; Chen et al. 2020 (SimCLR)",
    equation="NT-Xent",
    hyperparameters=HYPERPARAMETERS,
)
