"""An objective in training mode, and the first batch of an experiment."""

from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.objectives.objective import Batch, Objective
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.training.pretrain import build_objective


def started(e: Experiment, data: PreparedData) -> tuple[Objective, Batch]:
    return build_objective(e, data).train(), next(METHODS[e.method].feed(e, data).epoch(1))
