"""CMC: InfoNCE over all pairs of several views of an image."""

from contrasweep.losses import InfoNCE
from contrasweep.tuning.methods import cacr
from contrasweep.tuning.methods.loss_method import loss_method
from contrasweep.tuning.methods.method import TEMPERATURE

METHOD = loss_method(
    InfoNCE,
    name="cmc",
    summary="all pairs of several views of an image attract, all other images repel",
    paper="Tian et al. 2020; a baseline of CACR",
    equation="L_F, the full graph",
    hyperparameters={"positives": cacr.POSITIVES, "temperature": TEMPERATURE},
    feed=cacr.feed,
)
