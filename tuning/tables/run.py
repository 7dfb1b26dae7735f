"""Run what a table still lacks: ordinary searches and final runs, study after study, in one store."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from contrasweep.tuning.errors import SweepFailed
from contrasweep.tuning.planning.best_config import BestConfig, config_of
from contrasweep.tuning.planning.resources import Machine
from contrasweep.tuning.planning.resume_check import Expected
from contrasweep.tuning.ray.final import final_runs
from contrasweep.tuning.ray.sweep import resume_sweep, run_sweep
from contrasweep.tuning.results.selection import best_trials
from contrasweep.tuning.store import ResultsStore, StudyBusy, TrialOvertaken, open_location
from contrasweep.tuning.tables.plan import CellPlan, TablePlan
from contrasweep.tuning.tables.reuse import (
    completed_runs,
    final_rows,
    identity_of_final,
    plan_search,
    search_held,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TableProgress:
    """The progress of a table: `done` of `runs` final runs; `study` is running now."""

    study: str
    done: int
    runs: int
    searching: bool = False


Show = Callable[[TableProgress], None]


def run_table(
    plan: TablePlan,
    *,
    results: str | Path = "results",
    data_root: Path | None = None,
    concurrency: int | None = None,
    machine: Machine | None = None,
    command: str = "",
    show: Show | None = None,
) -> dict[str, str]:
    """Run what the store still lacks of a planned table; return the reasons of failed studies, by study.

    A run or a search that another table has made is not repeated. A study that another driver is running is
    left to that driver and counts as failed. The other studies run whether or not one fails. After an
    interruption, the same call continues.

    Raises:
        InputError: the store holds runs with other settings under the name of a study.
        StoreError: the results folder cannot be used.
    """
    report = show or (lambda progress: None)
    failed: dict[str, str] = {}
    before = 0
    on = _Where(results, data_root, concurrency, machine, command)
    for study, cells in plan.studies.items():
        of = plan.seeds * len(cells)
        report(TableProgress(study, before, plan.runs, searching=plan.tuned))
        try:
            configs = [_searched(plan, cells[0], on)] if plan.tuned else [cell.config for cell in cells]

            def tell(done: int, missing: int, study: str = study, end: int = before + of) -> None:
                report(TableProgress(study, end - missing + done, plan.runs))

            _run_missing(plan, configs, on, tell)
        except (SweepFailed, StudyBusy, TrialOvertaken) as error:
            log.warning("%s", error)
            failed[study] = str(error)
        before += of
    return failed


@dataclass(frozen=True)
class _Where:
    """The results folder, the data and the machine of the runs."""

    results: str | Path
    data_root: Path | None
    concurrency: int | None
    machine: Machine | None
    command: str


def _run_missing(
    plan: TablePlan, configs: list[BestConfig], on: _Where, show: Callable[[int, int], None]
) -> None:
    """Make the final runs that no table holds; other drivers write too, so the store is read again."""
    held = completed_runs(final_rows(ResultsStore(open_location(on.results, writable=True))))
    seeds = plan.seeds_of(configs[0].experiment)
    short = [
        config
        for config in configs
        if any((identity_of_final(config.experiment), seed) not in held for seed in seeds)
    ]
    if short:
        final_runs(
            short,
            seeds=plan.seeds,
            first_seed=seeds.start,
            elsewhere={
                key for key, runs in held.items() if all(run.study != configs[0].study for run in runs)
            },
            results=on.results,
            data_root=on.data_root,
            concurrency=on.concurrency,
            machine=on.machine,
            command=on.command,
            show=show,
        )


def _searched(plan: TablePlan, cell: CellPlan, on: _Where) -> BestConfig:
    """Return the best configuration of a row's search; start or continue the search where necessary."""
    store = ResultsStore(open_location(on.results, writable=True))
    study = search_held(plan, cell, store, on.data_root)
    if study is not None:
        resume_sweep(
            study,
            on.results,
            data_root=on.data_root,
            concurrency=on.concurrency,
            machine=on.machine,
            expected=Expected(trials=plan.trials, values=dict(cell.settings)),
        )
    else:
        study = cell.study
        resources = {"concurrency": on.concurrency, "machine": on.machine}
        run_sweep(plan_search(plan, cell, on.results, on.data_root, command=on.command, **resources))
    return config_of(best_trials(store, study)[0])
