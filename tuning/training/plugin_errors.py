"""Errors in a run that uses a plug-in, without a line of the plug-in in the traceback: it may be the cause.

Autograd, for example, fails in our call of `backward` if a method has overwritten what its gradient needs.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from contrasweep.data import DatasetMissing
from contrasweep.losses import RanksLost
from contrasweep.plugin_packages import distribution_of
from contrasweep.plugin_places import SUSPECTED, plugin_place
from contrasweep.tuning.errors import InputError, NotRepeatable, SweepFailed, TrainingDiverged, WrongReturn
from contrasweep.tuning.experiment import Experiment

FORESEEN = (
    DatasetMissing,
    InputError,
    MemoryError,
    NotRepeatable,
    OSError,
    RanksLost,
    SweepFailed,
    TrainingDiverged,
    WrongReturn,
)
"""Errors that say what is wrong, or that the machine is to blame for."""


@contextmanager
def suspecting_plugins(experiment: Experiment) -> Iterator[None]:
    """Let an unforeseen error inside the block say which plug-ins the run uses, if any."""
    try:
        yield
    except FORESEEN:
        raise
    except Exception as error:
        used = _plugins_of(experiment)
        if used and plugin_place(error) is None:
            error.add_note(f"{SUSPECTED}{', '.join(used)}, which may be the cause")
        raise


def _plugins_of(experiment: Experiment) -> list[str]:
    """Return what a run has of plug-ins, as `method dcl of contrasweep-dcl`."""
    named = [
        ("method", experiment.method),
        ("encoder", experiment.encoder.name),
        ("dataset", experiment.dataset.partition(":")[0]),
        *(("metric", metric) for metric in experiment.probes.metrics),
    ]
    found = ((kind, name, distribution_of(kind, name)) for kind, name in named)
    return [f"{kind} {name} of {distribution}" for kind, name, distribution in found if distribution]
