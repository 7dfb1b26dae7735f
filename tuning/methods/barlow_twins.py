"""Barlow Twins: the correlations of two views' features should be the identity matrix."""

from contrasweep.losses import BarlowTwins
from contrasweep.tuning.methods.from_loss import loss_method

METHOD = loss_method(
    BarlowTwins,
    name="barlow-twins",
    summary="each feature correlates with itself in the other view, and with no other feature",
    paper="Barlow Twins (Zbontar et al. 2021)",
    equation="Eq. 1 and 2",
    hyperparameters={"lam": "the weight lambda of the correlations between features"},
)
