"""eps-InfoNCE: two views of an image attract until a margin ahead of all other images."""

from contrasweep.losses import EpsInfoNCE
from contrasweep.tuning.methods.loss_method import loss_method
from contrasweep.tuning.methods.method import EPSILON, TEMPERATURE

METHOD = loss_method(
    EpsInfoNCE,
    name="eps-infonce",
    summary="two views attract until a margin ahead of all other images",
    paper="eps-SupInfoNCE + FairKL (Barbano et al. 2023)",
    equation="Eq. 2",
    hyperparameters={"temperature": TEMPERATURE, "epsilon": EPSILON},
)
