"""eps-SupCon: SupCon with a margin between positives and negatives."""

from contrasweep.losses import EpsSupCon
from contrasweep.tuning.methods.loss_method import loss_method
from contrasweep.tuning.methods.method import EPSILON, TEMPERATURE

METHOD = loss_method(
    EpsSupCon,
    name="eps-supcon",
    summary="SupCon with a margin between positives and negatives",
    paper="eps-SupInfoNCE + FairKL (Barbano et al. 2023)",
    equation="Eq. 5",
    hyperparameters={"temperature": TEMPERATURE, "epsilon": EPSILON},
)
