"""Running what is missing of a table: ordinary searches and final runs, study after study, in one store."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tuning.analysis.selection import best_trials
from tuning.best import BestConfig, config_of
from tuning.errors import SweepFailed
from tuning.machine import Machine
from tuning.planning import plan_sweep
from tuning.ray.final import final_runs
from tuning.ray.sweep import resume_sweep, run_sweep
from tuning.reproduction.plan import CellPlan, TablePlan
from tuning.store import ResultsStore, open_location, study_names

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TableProgress:
    """How far a table is: `done` of `runs` final runs; `study` is the one at work."""

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
    """Run what the store does not hold yet of a planned table; return why studies gave nothing, by study.

    A study that fails takes none of the others with it. Interrupted, the same call goes on where it was.

    Raises:
        InputError: the store holds runs of other settings under a study's name.
        StoreError: the results folder cannot be used, or another driver is at work on a study.
    """
    told = show or (lambda progress: None)
    failed: dict[str, str] = {}
    before = 0
    for study, cells in plan.studies.items():
        held = before

        def tell(done: int, of: int, study: str = study, held: int = held) -> None:
            told(TableProgress(study, held + done, plan.runs))

        told(TableProgress(study, before, plan.runs, searching=plan.tuned))
        try:
            configs = [cell.config for cell in cells]
            if plan.tuned:
                configs = [_searched(plan, cells[0], results, data_root, concurrency, machine, command)]
            final_runs(
                configs,
                seeds=plan.seeds,
                results=results,
                data_root=data_root,
                concurrency=concurrency,
                machine=machine,
                command=command,
                show=tell,
            )
        except SweepFailed as error:
            log.warning("%s", error)
            failed[study] = str(error)
        before += plan.seeds * len(cells)
    return failed


def _searched(
    plan: TablePlan,
    cell: CellPlan,
    results: str | Path,
    data_root: Path | None,
    concurrency: int | None,
    machine: Machine | None,
    command: str,
) -> BestConfig:
    """Return the best configuration of a row's search, which is made, gone on with, or there already."""
    location = open_location(results, writable=True)
    if cell.study in study_names(location):
        expected = {"trials": plan.trials, "values": dict(cell.given)}
        resume_sweep(
            cell.study,
            results,
            data_root=data_root,
            concurrency=concurrency,
            machine=machine,
            expected=expected,
        )
    else:
        assert cell.experiment is not None, "the cell runs"
        assert plan.table.run.tune is not None, "the table has a searched form"
        run_sweep(
            plan_sweep(
                cell.experiment.method,
                cell.experiment.dataset,
                trials=plan.trials,
                values=cell.given,
                metric=plan.table.run.tune.metric,
                concurrency=concurrency,
                machine=machine,
                data_root=data_root,
                results=results,
                name=cell.study,
                command=command,
            )
        )
    return config_of(best_trials(ResultsStore(location), cell.study)[0])
