"""VICReg: two views agree, and each feature varies over the batch without covarying with another."""

from contrasweep.losses import VICReg
from contrasweep.tuning.methods.from_loss import loss_method

METHOD = loss_method(
    VICReg,
    name="vicreg",
    summary="two views agree; each feature varies over the batch, and covaries with no other",
    paper="VICReg (Bardes et al. 2022)",
    equation="Eq. 1-6",
    hyperparameters={
        "invariance_weight": "the weight lambda of the views' agreement",
        "variance_weight": "the weight mu of the variance that a feature lacks",
        "covariance_weight": "the weight nu of the features' covariances",
        "form": "as the released code, whose means the coefficients belong to, or as Eq. 5 and 6",
    },
)
