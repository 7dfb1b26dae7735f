"""contrasweep's engine; `sweep`, `pretrain` and the other entry points load what they need on first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tuning.packages import refuse_shadowed_packages

if TYPE_CHECKING:
    from tuning.analysis.selection import best_trials
    from tuning.config import Experiment
    from tuning.planning import plan_sweep
    from tuning.ray.final import final_runs
    from tuning.ray.sweep import resume_sweep, run_sweep, sweep
    from tuning.reports.report import write_report
    from tuning.store import ResultsStore
    from tuning.training.pretrain import pretrain

__version__ = "0.1.0"

_HOMES = {
    "Experiment": "tuning.config",
    "ResultsStore": "tuning.store",
    "best_trials": "tuning.analysis.selection",
    "final_runs": "tuning.ray.final",
    "plan_sweep": "tuning.planning",
    "pretrain": "tuning.training.pretrain",
    "resume_sweep": "tuning.ray.sweep",
    "run_sweep": "tuning.ray.sweep",
    "sweep": "tuning.ray.sweep",
    "write_report": "tuning.reports.report",
}

__all__ = [
    "Experiment",
    "ResultsStore",
    "best_trials",
    "final_runs",
    "plan_sweep",
    "pretrain",
    "resume_sweep",
    "run_sweep",
    "sweep",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """Import an entry point on first use: torch and Ray cost seconds that `contrasweep --help` should not."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tuning' has no attribute {name!r}")
    refuse_shadowed_packages()
    return getattr(import_module(_HOMES[name]), name)
