"""DCL: InfoNCE with the positive left out of its denominator (Yeh et al. 2022)."""

from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import normalize

from contrasweep.losses.terms import LossTerms
from contrasweep.models import Encoder
from contrasweep.search_spaces import load_space
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import Hyperparameter, Method
from contrasweep.tuning.methods.method import with_projection_head
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import PreparedData


def dcl_terms(views: Tensor, temperature: float) -> LossTerms:
    """One term for each of the 2B anchors in `views` (2, B, D): all other images repel, with both views."""
    z = normalize(views, dim=2)
    positive = (z[0] * z[1]).sum(dim=1) / temperature
    scores = z.flatten(0, 1) @ z.flatten(0, 1).T / temperature
    image = torch.arange(views.shape[1], device=views.device).repeat(2)
    negative = scores.masked_fill(image[:, None] == image, -torch.inf).logsumexp(dim=1)
    values = negative - positive.repeat(2)
    return LossTerms(values, valid=torch.ones_like(values, dtype=torch.bool))


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return DCL on the projection head's output."""
    temperature = float(experiment.hyperparameters["temperature"])
    return with_projection_head(experiment, encoder, lambda views, batch: dcl_terms(views, temperature))


METHOD = Method(
    name="dcl",
    summary="InfoNCE without the positive in its denominator",
    paper="DCL (Yeh et al. 2022)",
    equation="L_DC",
    hyperparameters={"temperature": Hyperparameter("the scale tau of the scores", float, above=0)},
    build=build,
    space=load_space(Path(__file__).with_name("dcl.yaml")),
)
