"""HardNeg-InfoNCE (HN-CL): the negatives closest to the anchor weigh most."""

from contrasweep.losses import HardNegInfoNCE
from contrasweep.tuning.methods.loss_method import loss_method
from contrasweep.tuning.methods.method import TEMPERATURE

METHOD = loss_method(
    HardNegInfoNCE,
    name="hardneg-infonce",
    summary="the negatives closest to the anchor weigh most",
    paper="Robinson et al. 2021; a baseline of CCL-K and CACR (HN-CL)",
    equation="Eq. 4",
    hyperparameters={
        "temperature": TEMPERATURE,
        "beta": "how much more close negatives weigh",
        "tau_plus": "the share of negatives taken to be of the anchor's class",
    },
)
