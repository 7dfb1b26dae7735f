"""The corruptions of ImageNet-C for images of 32 x 32 pixels, as Corrupted CIFAR-10 uses them.

Formulas and constants are those of Hendrycks & Dietterich, "Benchmarking Neural Network Robustness to Common
Corruptions and Perturbations" (ICLR 2019), in the released code of Nam et al., "Learning from Failure"
(NeurIPS 2020), `data/corrupted_cifar10_protocol.py`.
"""

from contrasweep.data.corruptions.blur import BLURS
from contrasweep.data.corruptions.corruption import LEVELS, Corruption, Pixels
from contrasweep.data.corruptions.digital import DIGITAL
from contrasweep.data.corruptions.frost_pictures import check_frost_pictures
from contrasweep.data.corruptions.noise import NOISES
from contrasweep.data.corruptions.spatter import SPATTER_OF_LIQUIDS
from contrasweep.data.corruptions.weather import WEATHER

CORRUPTIONS = {
    corruption.name: corruption
    for corruption in (
        *WEATHER,
        SPATTER_OF_LIQUIDS,
        *DIGITAL,
        *NOISES,
        *BLURS,
        Corruption("Original", lambda pixels, level: pixels),
    )
}
"""The corruptions by their names in the released code."""

__all__ = ["CORRUPTIONS", "LEVELS", "Corruption", "Pixels", "check_frost_pictures"]
