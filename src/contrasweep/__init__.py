"""Search, train and reproduce contrastive-pretraining experiments, on a laptop or a Ray cluster.

The names below are the entry points; each imports what it needs on first use. The five packages inside
(`losses`, `models`, `data`, `search_spaces`, `tuning`) are links to the folders at the top of the repository;
in an installed copy they are ordinary folders.
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from contrasweep.version import __version__

if TYPE_CHECKING:
    from contrasweep.tuning.experiment import Experiment
    from contrasweep.tuning.export.encoder import export_encoder
    from contrasweep.tuning.planning.plan_sweep import plan_sweep
    from contrasweep.tuning.ray.final import final_runs
    from contrasweep.tuning.ray.sweep import resume_sweep, run_sweep, sweep
    from contrasweep.tuning.reports.report import write_report
    from contrasweep.tuning.results.selection import best_trials
    from contrasweep.tuning.results.study import read_study
    from contrasweep.tuning.store import ResultsStore
    from contrasweep.tuning.training.pretrain import pretrain
    from contrasweep.tuning.transfer.embed import embed
    from contrasweep.tuning.transfer.evaluate import evaluate
    from contrasweep.tuning.transfer.study_map import feature_maps

# The tqdm that Ray and Optuna import says so in a notebook without ipywidgets. We do not use it.
warnings.filterwarnings("ignore", "IProgress not found")

_HOMES = {
    "Experiment": "contrasweep.tuning.experiment",
    "ResultsStore": "contrasweep.tuning.store",
    "best_trials": "contrasweep.tuning.results.selection",
    "embed": "contrasweep.tuning.transfer.embed",
    "evaluate": "contrasweep.tuning.transfer.evaluate",
    "export_encoder": "contrasweep.tuning.export.encoder",
    "feature_maps": "contrasweep.tuning.transfer.study_map",
    "final_runs": "contrasweep.tuning.ray.final",
    "plan_sweep": "contrasweep.tuning.planning.plan_sweep",
    "pretrain": "contrasweep.tuning.training.pretrain",
    "read_study": "contrasweep.tuning.results.study",
    "resume_sweep": "contrasweep.tuning.ray.sweep",
    "run_sweep": "contrasweep.tuning.ray.sweep",
    "sweep": "contrasweep.tuning.ray.sweep",
    "write_report": "contrasweep.tuning.reports.report",
}
_PACKAGES = ("data", "losses", "models", "search_spaces", "tuning")

__all__ = [
    "Experiment",
    "ResultsStore",
    "__version__",
    "best_trials",
    "embed",
    "evaluate",
    "export_encoder",
    "feature_maps",
    "final_runs",
    "plan_sweep",
    "pretrain",
    "read_study",
    "resume_sweep",
    "run_sweep",
    "sweep",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """Import an entry point on first use, so that `contrasweep --help` does not wait for torch and Ray."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _PACKAGES:
        return import_module(f"contrasweep.{name}")
    raise AttributeError(f"module 'contrasweep' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the entry points and the packages, also before their first use makes them attributes."""
    return sorted({*globals(), *_HOMES, *_PACKAGES})
