"""InfoNCE whose first step breaks the GPU: a plug-in, so that Ray's workers have it too.

On a CPU the errors of a GPU are raised by hand.
"""

import torch
from torch import Tensor

from contrasweep.losses import InfoNCE
from contrasweep.losses.terms import LossTerms
from contrasweep.models import Encoder
from contrasweep.rules import OneOf
from contrasweep.search_spaces import Space
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import Hyperparameter, Method
from contrasweep.tuning.methods.method import with_projection_head
from contrasweep.tuning.objectives.objective import Batch, Objective
from contrasweep.tuning.objectives.prepared import PreparedData

BROKEN = {"assert": "device-side assert", "memory": "out of memory"}
"""What breaks, and words of the error that tells it."""

SOUND = ("none", "none-again")
"""Trials that complete: the first one of the sweep, and the one after the broken ones."""

_LARGE = 1 << 50


class Breaking:
    """The loss: its first call does what `fault` says."""

    def __init__(self, fault: str) -> None:
        self._fault = fault
        self._loss = InfoNCE(temperature=0.5)

    def __call__(self, views: Tensor, batch: Batch) -> LossTerms:
        if self._fault == "assert":
            _trip(views)
        elif self._fault == "memory":
            _fill(views)
        return self._loss.terms(views)


def _trip(views: Tensor) -> None:
    if not views.is_cuda:
        raise RuntimeError("CUDA error: device-side assert triggered (made up, on a CPU)")
    views.flatten()[torch.tensor([views.numel()], device=views.device)].sum().item()


def _fill(views: Tensor) -> None:
    if not views.is_cuda:
        raise torch.OutOfMemoryError("CUDA out of memory (made up, on a CPU)")
    torch.empty(_LARGE, dtype=torch.uint8, device=views.device)


def _build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    return with_projection_head(experiment, encoder, Breaking(str(experiment.hyperparameters["fault"])))


_FAULTS = (SOUND[0], *BROKEN, SOUND[1])

METHOD = Method(
    name="broken",
    summary="InfoNCE whose first step breaks the GPU",
    paper="none",
    equation="none",
    hyperparameters={"fault": Hyperparameter("what breaks", OneOf(_FAULTS))},
    build=_build,
    space=Space.parse({"fault": {"choice": list(_FAULTS), "default": SOUND[0]}}, "the space of faults"),
)
