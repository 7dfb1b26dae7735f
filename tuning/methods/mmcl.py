"""MMCL: contrast with negatives that support vector machines select."""

from contrasweep.losses import MMCL
from contrasweep.tuning.methods.from_loss import loss_method

METHOD = loss_method(
    MMCL,
    name="mmcl",
    summary="negatives are weighted as support vectors of the margin between them and the anchor",
    paper="MMCL (Shah et al. 2022)",
    equation="the SVM's dual and its closed form",
    hyperparameters={
        "sigma": "the width of the kernel, in squared distances",
        "bound": "C, the largest multiplier of a negative",
        "reg": "what is added to the diagonal of the kernel",
        "solver": "the clipped closed form, or projected gradient steps from there",
        "iterations": "the number of projected gradient steps",
    },
)
