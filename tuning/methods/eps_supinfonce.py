"""eps-SupInfoNCE: images of one class attract each by itself, until a margin ahead of all other classes."""

from contrasweep.losses import EpsSupInfoNCE
from contrasweep.tuning.methods.loss_method import loss_method
from contrasweep.tuning.methods.method import EPSILON, TEMPERATURE

METHOD = loss_method(
    EpsSupInfoNCE,
    name="eps-supinfonce",
    summary="images of one class attract until a margin ahead of all other classes",
    paper="eps-SupInfoNCE + FairKL (Barbano et al. 2023)",
    equation="Eq. 4; variants of Eq. 17",
    hyperparameters={
        "temperature": TEMPERATURE,
        "epsilon": EPSILON,
        "variant": "which of Eq. 17's four forms",
    },
)
