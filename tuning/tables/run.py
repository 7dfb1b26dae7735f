"""Run what a table still lacks: ordinary searches and final runs, study after study, in one store."""

import logging
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from contrasweep.tuning.errors import InputError, SweepFailed, told_to_user
from contrasweep.tuning.objectives.ranks import check_batch_size
from contrasweep.tuning.planning.best_config import BestConfig, config_of
from contrasweep.tuning.planning.resources import NOTHING_ASKED, AskedResources
from contrasweep.tuning.planning.resume_check import Expected
from contrasweep.tuning.progress.states import Progress
from contrasweep.tuning.ray.final import final_runs
from contrasweep.tuning.ray.sweep import resume_sweep, run_sweep
from contrasweep.tuning.results.commands import results_folder
from contrasweep.tuning.results.selection import best_trials
from contrasweep.tuning.results.trials import refuse_other_version
from contrasweep.tuning.store import (
    ResultsStore,
    StudyBusy,
    TrialOvertaken,
    final_name,
    open_location,
    study_names,
)
from contrasweep.tuning.tables.collect import StoredRuns, identities_of_final, plan_search, search_held
from contrasweep.tuning.tables.planned import CellPlan, TablePlan
from contrasweep.tuning.tables.results import Key

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TableProgress:
    """The progress of a table: `done` of `runs` final runs; `study` is running now.

    `training` is true once a run of the study trains: what the store holds is not trained again.
    """

    study: str
    done: int
    runs: int
    searching: bool = False
    training: bool = False


Show = Callable[[TableProgress], None]


def run_table(
    plan: TablePlan,
    asked: AskedResources = NOTHING_ASKED,
    *,
    results: str | Path | None = None,
    data_root: Path | None = None,
    command: str = "",
    saved: Mapping[Key, Set[int | None]] | None = None,
    show: Show | None = None,
) -> dict[str, str]:
    """Run what the store still lacks of a planned table; return the reasons of failed studies, by study.

    A run or a search that another table has made is not repeated, and neither is a saved run. A study that
    another driver is running is left to that driver and counts as failed. The other studies run whether or
    not one fails. After an interruption, the same call continues.

    Args:
        plan: the table.
        asked: the resources of runs and of the trials of searches; a search that goes on keeps its cores.
        results, data_root, command: as in `ray.final.final_runs`.
        saved: the seeds of each cell whose scores are known without the store (`joined.saved_seeds`).
        show: called with the progress.

    Raises:
        InputError: the store holds runs with other settings, or of another version, under the name of a
            study, or a batch does not divide among the workers.
        StoreError: the results folder cannot be used.
    """
    report, results = show or (lambda progress: None), results_folder(results)
    store = ResultsStore(open_location(results, writable=True))
    _refuse_runs_of_other_versions(plan, store)
    for cell in (one for cells in plan.studies.values() for one in cells):
        check_batch_size(cell.planned.batch_size, asked.workers or 1)
    failed: dict[str, str] = {}
    before = 0
    for study, cells in plan.studies.items():
        of = plan.seeds * len(cells)
        report(TableProgress(study, before, plan.runs, searching=plan.tuned))

        def tell(runs: Progress, study: str = study, end: int = before + of) -> None:
            report(TableProgress(study, end - runs.planned + runs.done, plan.runs, training=True))

        try:
            configs = [cell.config for cell in cells]
            if plan.tuned:
                configs = [_searched(plan, cells[0], store, asked, results, data_root, command)]
            known = _saved_runs(plan, cells, saved or {})
            told = {"command": command, "progress": tell}
            _run_missing(plan, configs, known, store, asked, results=results, data_root=data_root, **told)
        except (SweepFailed, StudyBusy, TrialOvertaken) as error:
            log.warning("%s", error)
            failed[study] = str(error)
        before += of
    return failed


def _refuse_runs_of_other_versions(plan: TablePlan, store: ResultsStore) -> None:
    """Refuse to add runs to those that another version may have trained differently."""
    there = study_names(store.location)
    for name in (final_name(study) for study in plan.studies):
        if name in there:
            with told_to_user(after=": use another results folder"):
                refuse_other_version(store.study(name))


def _saved_runs(
    plan: TablePlan, cells: list[CellPlan], saved: Mapping[Key, Set[int | None]]
) -> set[tuple[str, int]]:
    """Return the saved runs of a study by identity and seed; columns that share a run must all have it."""
    return {
        (identity, seed)
        for cell in cells
        for seed in plan.known_seeds(cell, saved)
        for identity in identities_of_final(cell.planned)
    }


def _run_missing(
    plan: TablePlan,
    configs: list[BestConfig],
    saved: set[tuple[str, int]],
    store: ResultsStore,
    asked: AskedResources,
    **options: Any,
) -> None:
    """Make the final runs that no table holds; other drivers write too, so the store is read again."""
    stored = StoredRuns(store)
    seeds = plan.seeds_of(configs[0].experiment)
    known = [identities_of_final(config.experiment) for config in configs]
    short = [
        config
        for config, own in zip(configs, known, strict=True)
        if not all(stored.of(own, seed) or (own[0], seed) in saved for seed in seeds)
    ]
    if short:
        held = stored.completed
        there = {key for key, runs in held.items() if configs[0].study not in {one.study for one in runs}}
        final_runs(
            short,
            seeds=plan.seeds,
            first_seed=seeds.start,
            elsewhere=there | saved,
            **asked.given("cpus_per_run"),
            **options,
        )


def _searched(
    plan: TablePlan,
    cell: CellPlan,
    store: ResultsStore,
    asked: AskedResources,
    results: str | Path,
    data_root: Path | None,
    command: str,
) -> BestConfig:
    """Return the best configuration of a row's search; start or continue the search where necessary."""
    study = search_held(plan, cell, store, data_root)
    if study is None:
        study = cell.study
        if study in study_names(store.location):
            raise InputError(f"study {study} searched an earlier space: use another results folder")
        on = asked.given("cpus_per_trial")
        search = plan_search(plan, cell, results, data_root, command=command, **on)
        run_sweep(search, progress=False)
    else:
        expected = Expected(trials=plan.trials, values=dict(cell.settings))
        on = replace(asked, cpus=None).given()
        resume_sweep(study, results, data_root=data_root, expected=expected, progress=False, **on)
    return config_of(best_trials(store, study)[0])
