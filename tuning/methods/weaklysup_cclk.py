"""WeaklySup-CCLK: images whose conditions are alike by a kernel attract, all others repel."""

from contrasweep.losses import WeaklySupCCLK
from contrasweep.tuning.methods.conditioning import KERNEL
from contrasweep.tuning.methods.loss_method import loss_method

METHOD = loss_method(
    WeaklySupCCLK,
    name="weaklysup-cclk",
    summary="images attract by how similar their conditions are",
    paper="CCL-K (Tsai et al. 2022)",
    equation="Eq. 7",
    hyperparameters=KERNEL,
)
