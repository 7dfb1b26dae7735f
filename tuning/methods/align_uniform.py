"""Align+Uniform: two views of an image come close, and all images spread evenly over the sphere."""

from contrasweep.losses import AlignUniform
from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.method import Hyperparameter, Method, with_projection_head
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import PreparedData


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return Align+Uniform on the projection head's output."""
    loss = AlignUniform(**experiment.hyperparameters)  # type: ignore[arg-type]
    return with_projection_head(experiment, encoder, lambda views, batch: loss.terms(views))


METHOD = Method(
    name="align-uniform",
    summary="two views come close, and images spread evenly over the sphere",
    paper="Wang and Isola 2020; a baseline of CACR (AU-CL)",
    equation="Section 4.1: L_align and L_uniform",
    hyperparameters={
        "t": Hyperparameter("how near images must be to repel", float, above=0),
        "align_weight": Hyperparameter("the weight of alignment", float, at_least=0),
        "uniform_weight": Hyperparameter("the weight of uniformity", float, at_least=0),
    },
    build=build,
)
