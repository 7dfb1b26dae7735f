"""Fair-CCLK: negatives are weighted by the kernel similarity of their condition to the anchor's."""

from contrasweep.losses import FairCCLK
from contrasweep.tuning.methods.conditioning import KERNEL
from contrasweep.tuning.methods.loss_method import loss_method

METHOD = loss_method(
    FairCCLK,
    name="fair-cclk",
    summary="negatives are weighted by how similar their condition is to the anchor's",
    paper="CCL-K (Tsai et al. 2022)",
    equation="Eq. 8",
    hyperparameters=KERNEL,
)
