"""InfoNCE with a fault: a method for tests, installed as a plug-in so that Ray's workers have it too.

Wherever it is installed, trials of any method save a checkpoint after every epoch: short ones have something
to go on from.
"""

import logging
import os
import signal
import threading
from pathlib import Path
from typing import Any

import torch

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
from contrasweep.tuning.objectives.ranks import group_ranks
from contrasweep.tuning.trials import checkpoints

log = logging.getLogger(__name__)

checkpoints.CHECKPOINT_SECONDS = 0.0
_save = checkpoints.Checkpoints.save


def _save_and_wait(self: checkpoints.Checkpoints, *state: Any) -> None:
    """Save a state and wait until it is written: the next fault may come before."""
    _save(self, *state)
    self.wait()


checkpoints.Checkpoints.save = _save_and_wait  # type: ignore[method-assign]

FAULTS = ("none", "killed-once", "crash", "nan", "memory", "error", "hang", "gpu-once", "gpu-memory-once")
OF_GPUS = {
    "gpu-once": torch.AcceleratorError("CUDA error: device-side assert triggered\nCompile with ..."),
    "gpu-memory-once": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
}


class Faulty:
    """The loss; a fault comes with the first batch after epoch 1."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.epoch = 0
        self.loss = InfoNCE(temperature=0.5)

    def __call__(self, views: object, batch: Batch) -> LossTerms:
        if self.epoch == 2:
            self.act()
        terms = self.loss.terms(views)  # type: ignore[arg-type]
        if self.fault == "nan" and self.epoch == 2:
            return LossTerms(terms.values * float("nan"), terms.valid)
        return terms

    def act(self) -> None:
        notes = Path(os.environ["FAULTS"])
        ranks = group_ranks()
        last = ranks.rank == ranks.world - 1
        if self.fault == "killed-once" and last and not (notes / "killed").exists():
            (notes / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.fault == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif self.fault == "memory":
            bytearray(1 << 60)
        elif self.fault == "error":
            raise ValueError("this trial always fails")
        elif self.fault in OF_GPUS:
            with (notes / self.fault).open("a+") as file:
                file.seek(0)
                earlier = file.read()
                file.write(f"{os.getpid()}\n")
            if not earlier:
                raise OF_GPUS[self.fault]
            # A batch later, in the same process.
            self.fault = "none"
        elif self.fault == "hang":
            (notes / "hanging").touch()
            threading.Event().wait()


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    log.warning("a method for tests, with the fault %s", experiment.hyperparameters["fault"])
    faulty = Faulty(str(experiment.hyperparameters["fault"]))
    objective = with_projection_head(experiment, encoder, faulty)
    begun = objective.on_epoch_start

    def on_epoch_start(epoch: int, embed: object) -> object:
        faulty.epoch = epoch
        return begun(epoch, embed)  # type: ignore[arg-type]

    objective.on_epoch_start = on_epoch_start  # type: ignore[method-assign, assignment]
    return objective


METHOD = Method(
    name="faulty",
    summary="InfoNCE with a fault",
    paper="none",
    equation="none",
    hyperparameters={"fault": Hyperparameter("what goes wrong in epoch 2", OneOf(FAULTS))},
    build=build,
    space=Space.parse({"fault": {"choice": list(FAULTS), "default": "none"}}, "the space of faults"),
)
