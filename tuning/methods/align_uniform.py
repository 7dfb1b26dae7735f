"""Align+Uniform: two views of an image come close, and all images spread evenly over the sphere."""

from contrasweep.losses import AlignUniform
from contrasweep.tuning.methods.loss_method import loss_method

METHOD = loss_method(
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
