"""Search, train and reproduce contrastive-pretraining experiments, on a laptop or a Ray cluster.

The names below are the entry points; each imports what it needs on first use. The five packages inside
(`losses`, `models`, `data`, `search_spaces`, `tuning`) are links to the folders at the top of the repository;
in an installed copy they are ordinary folders.
"""

import warnings
from typing import TYPE_CHECKING

from contrasweep.lazy import exports
from contrasweep.version import __version__

if TYPE_CHECKING:
    from contrasweep import data, losses, models, search_spaces, tuning  # noqa: F401 packages, no entry points
    from contrasweep.tuning.experiment import Experiment
    from contrasweep.tuning.export.encoder import export_encoder
    from contrasweep.tuning.planning.ablation import ablated
    from contrasweep.tuning.planning.plan_sweep import plan_sweep
    from contrasweep.tuning.planning.resolve import resolve
    from contrasweep.tuning.ray.final import final_runs
    from contrasweep.tuning.ray.sweep import resume_sweep, run_sweep, sweep
    from contrasweep.tuning.reports.report import write_report
    from contrasweep.tuning.results.selection import best_trials
    from contrasweep.tuning.results.study import read_study
    from contrasweep.tuning.sensitivity.analyse import analyse
    from contrasweep.tuning.store import ResultsStore
    from contrasweep.tuning.training.pretrain import pretrain
    from contrasweep.tuning.transfer.embed import embed
    from contrasweep.tuning.transfer.evaluate import evaluate
    from contrasweep.tuning.transfer.study_map import feature_maps

# The tqdm that Ray and Optuna import says so in a notebook without ipywidgets. We do not use it.
warnings.filterwarnings("ignore", "IProgress not found")

__all__ = [
    "Experiment",
    "ResultsStore",
    "__version__",
    "ablated",
    "analyse",
    "best_trials",
    "embed",
    "evaluate",
    "export_encoder",
    "feature_maps",
    "final_runs",
    "plan_sweep",
    "pretrain",
    "read_study",
    "resolve",
    "resume_sweep",
    "run_sweep",
    "sweep",
    "write_report",
]

__getattr__, __dir__ = exports(__name__, __file__)
