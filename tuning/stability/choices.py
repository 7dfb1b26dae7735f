"""What the first trials of a pool choose, as the files from which `contrasweep run` makes final runs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from contrasweep.tuning.files import write_whole
from contrasweep.tuning.planning.best_config import best_yaml
from contrasweep.tuning.results.selection import SelectedTrial, best_trials
from contrasweep.tuning.stability.tried import Tried
from contrasweep.tuning.store import ResultsStore


def chosen_trial(study: Tried, budget: int) -> int:
    """Return the number of the trial that the first `budget` ones choose; of equal ones the earliest."""
    return int(study.trial[np.argmax(study.select[:budget])])


def write_choices(
    store: ResultsStore, studies: Sequence[Tried], budgets: Sequence[int], folder: Path
) -> list[Path]:
    """Write `STUDY-BUDGET.yaml` for each study and budget into a folder, and return the files."""
    written = []
    for study in studies:
        by_number = {one.trial: one for one in best_trials(store, study.study, top=len(study) + 1)}
        for budget in budgets:
            selected = _named(by_number[chosen_trial(study, budget)], budget)
            path = folder / f"{study.study}-{budget}.yaml"
            write_whole(path, best_yaml(selected))
            written.append(path)
    return written


def _named(selected: SelectedTrial, budget: int) -> SelectedTrial:
    return replace(selected, rule=f"{selected.rule}, of the first {budget} besides the defaults")
