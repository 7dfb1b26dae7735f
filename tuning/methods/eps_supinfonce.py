"""The losses with a margin epsilon: eps-InfoNCE, eps-SupCon and eps-SupInfoNCE (Barbano et al. 2023)."""

from contrasweep.losses import EpsInfoNCE, EpsSupCon, EpsSupInfoNCE
from contrasweep.tuning.methods.from_loss import loss_method
from contrasweep.tuning.methods.method import TEMPERATURE

MARGIN = {"temperature": TEMPERATURE, "epsilon": "the margin between positives and negatives"}

PAPER = "eps-SupInfoNCE + FairKL (Barbano et al. 2023)"

EPS_INFONCE = loss_method(
    EpsInfoNCE,
    name="eps-infonce",
    summary="two views are closer than all other images, by a margin",
    paper=PAPER,
    equation="Eq. 2",
    hyperparameters=MARGIN,
)
EPS_SUPCON = loss_method(
    EpsSupCon,
    name="eps-supcon",
    summary="SupCon with a margin between positives and negatives",
    paper=PAPER,
    equation="Eq. 5",
    hyperparameters=MARGIN,
)
EPS_SUPINFONCE = loss_method(
    EpsSupInfoNCE,
    name="eps-supinfonce",
    summary="images of one class are closer than those of other classes, by a margin",
    paper=PAPER,
    equation="Eq. 4; variants of Eq. 17",
    hyperparameters={**MARGIN, "variant": "which of Eq. 17's four forms"},
)
