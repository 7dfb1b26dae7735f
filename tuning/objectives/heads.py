"""The projection head that an experiment asks for."""

from copy import deepcopy

import torch
from torch import Tensor, nn

from contrasweep.models import Encoder, build_head
from contrasweep.tuning.experiment import Experiment


def experiment_head(experiment: Experiment, encoder: Encoder) -> nn.Module:
    """Return a new projection head for the encoder's features, with the experiment's head settings."""
    settings = experiment.head
    return build_head(settings.name, encoder.width, settings.hidden, settings.width)


@torch.no_grad()
def head_outputs(head: nn.Module, inputs: int) -> int:
    """Return the width of a head's embeddings of `inputs` features; a copy of the head computes them."""
    embeddings: Tensor = deepcopy(head).eval()(torch.zeros(1, inputs))
    return embeddings.shape[1]
