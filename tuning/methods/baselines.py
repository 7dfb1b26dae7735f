"""Losses of the views, with or without labels, that the papers' methods build on and are compared with."""

from contrasweep.losses import AlignUniform, HardNegInfoNCE, InfoNCE, SupCon
from contrasweep.tuning.methods.from_loss import loss_method
from contrasweep.tuning.methods.method import TEMPERATURE

INFONCE_HYPERPARAMETERS = {
    "temperature": TEMPERATURE,
    "negatives": "which other views repel: of the other view only, or of both",
}

INFONCE = loss_method(
    InfoNCE,
    name="infonce",
    summary="two views of an image attract, all other images repel",
    paper="van den Oord et al. 2018; Chen et al. 2020 (SimCLR)",
    equation="NT-Xent",
    hyperparameters=INFONCE_HYPERPARAMETERS,
)
HARDNEG_INFONCE = loss_method(
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
SUPCON = loss_method(
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
ALIGN_UNIFORM = loss_method(
    AlignUniform,
    name="align-uniform",
    summary="two views come close, and images spread evenly over the sphere",
    paper="Wang and Isola 2020; a baseline of CACR (AU-CL)",
    equation="Section 4.1: L_align and L_uniform",
    hyperparameters={
        "t": "how near images must be to repel",
        "align_weight": "the weight of alignment",
        "uniform_weight": "the weight of uniformity",
    },
)
