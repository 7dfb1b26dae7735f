"""The configurations selected from the first trials of a pool, as files for `contrasweep run`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.files import write_whole
from contrasweep.tuning.planning.best_config import best_yaml
from contrasweep.tuning.results.selection import SelectedTrial, StoredSearch
from contrasweep.tuning.stability.scored_pool import ScoredPool
from contrasweep.tuning.statistics import Floats
from contrasweep.tuning.store import ResultsStore


def chosen_place(select: Floats, budget: int) -> int:
    """Return which of the first `budget` trials has the highest select score; of equal ones the earliest."""
    return int(np.argmax(select[:budget]))


def write_choices(
    store: ResultsStore, studies: Sequence[ScoredPool], budgets: Sequence[int], folder: Path
) -> list[Path]:
    """Write `STUDY-BUDGET.yaml` for each study and budget into a folder, and return the files.

    Of equal trials, the earliest is chosen. Failed trials are not.

    Raises:
        InputError: the first trials of a study have all failed; nothing is written then.
    """
    texts = {}
    for study in studies:
        # Of paired studies, `study` holds the common trials only: the best of all of them are asked for.
        search = StoredSearch(store, study.study)
        by_number = {one.trial: one for one in search.best(top=len(search.candidates.outcomes))}
        completed = [trial in by_number for trial in study.trial.tolist()]
        select = np.where(completed, study.select, -np.inf)
        for budget in budgets:
            place = chosen_place(select, budget)
            if not completed[place]:
                raise InputError(
                    f"--choices: given --budgets with {budget}, but no trial among the first {budget} of "
                    f"{study.study} has completed; leave that number out of --budgets"
                )
            selected = _named(by_number[int(study.trial[place])], budget)
            texts[folder / f"{study.study}-{budget}.yaml"] = best_yaml(selected, search.record.versions)
    for path, text in texts.items():
        write_whole(path, text)
    return list(texts)


def _named(selected: SelectedTrial, budget: int) -> SelectedTrial:
    return replace(selected, rule=f"{selected.rule}, of the first {budget} besides the defaults")
