"""SupCon: images of one class attract, all others repel."""

from contrasweep.losses import SupCon
from contrasweep.tuning.methods.loss_method import loss_method
from contrasweep.tuning.methods.method import TEMPERATURE

METHOD = loss_method(
    SupCon,
    name="supcon",
    summary="images of one class attract, all others repel",
    paper="Khosla et al. 2020",
    equation="Eq. 2 (out), Eq. 3 (in)",
    hyperparameters={
        "temperature": TEMPERATURE,
        "form": "the mean over positives outside the logarithm, or inside",
    },
)
