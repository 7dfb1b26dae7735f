"""The configurations that final runs train: that of a file, or the best trials of a study."""

from collections.abc import Sequence
from pathlib import Path

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.limits import check_count
from contrasweep.tuning.planning.best_config import BestConfig, load_best, read_mapping
from contrasweep.tuning.planning.plugin_changes import refuse_absent_plugins
from contrasweep.tuning.results.commands import YAML, results_folder
from contrasweep.tuning.results.selection import SelectedTrial, StoredSearch, refuse_beside_trial
from contrasweep.tuning.store import ResultsStore

Selected = BestConfig | SelectedTrial


def check_source(
    source: str | Path,
    results: str | Path | None = None,
    top: int = 1,
    where: Sequence[str] = (),
    trial: int | None = None,
) -> None:
    """Refuse what is known to be wrong before torch is imported; the arguments are those of `selected_of`.

    Raises:
        InputError: the file cannot be read or holds no settings, `top` is below 1, or an option does not go
            with a file.
        StoreError: there is no such study.
    """
    check_count("--top", top)
    refuse_beside_trial(trial, top > 1, where)
    of_study = "--top" if top > 1 else "--where" if where else "" if trial is None else "--trial"
    if not _is_file(source):
        ResultsStore(results_folder(results)).study(str(source))
    elif of_study:
        raise InputError(f"{of_study} goes with a study; {source} holds one configuration")
    else:
        read_mapping(Path(source))


def selected_of(
    source: str | Path,
    results: str | Path | None = None,
    data_root: Path | None = None,
    top: int = 1,
    where: Sequence[str] = (),
    trial: int | None = None,
) -> Sequence[Selected]:
    """Return the configuration in a file, or trials of a study: the best, the first of them first, or one.

    Args:
        source: a file such as best.yaml, or the name of a study.
        results: the results folder; by default CONTRASWEEP_RESULTS or `results`.
        data_root: the folder of the datasets; by default the one of the search, if this machine has it.
        top: how many trials of a study; there may be fewer.
        where: conditions that they keep, see `best_trials`.
        trial: the number of a completed trial, which is taken instead of the best.

    Raises:
        InputError: see `check_source`, `load_best` and `best_trials`, or a plug-in of the study is not
            installed here.
        SweepFailed: no trial of the study can be selected.
        StoreError: there is no such study.
    """
    check_source(source, results, top, where, trial)
    folder = results_folder(results)
    if _is_file(source):
        return [load_best(Path(source), data_root, folder)]
    search = StoredSearch(ResultsStore(folder), str(source))
    refuse_absent_plugins(search.record)
    return search.select(top, where, trial)


def _is_file(source: str | Path) -> bool:
    return Path(source).suffix in YAML
