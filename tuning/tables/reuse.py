"""Reuse across tables: a run or a search that is already in the results folder is never repeated.

A final run is recognised by the hash of its experiment and by its seed, whichever table asked for it. A
search is recognised by its whole plan, without its name and the machine.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.provenance import package_versions, same_series
from contrasweep.tuning.store import FINAL_SUFFIX, ResultsStore, StudyRecord, study_names
from contrasweep.tuning.tables.plan import STUDY_PREFIX, CellPlan, TablePlan

RunKey = tuple[str, int]
"""The hash of the experiment as a final run has it, and the seed."""

_OF_THE_MACHINE = ("concurrency", "cpus", "workers", "gpus", "max_failures", "trial_timeout", "data_root")


@dataclass(frozen=True)
class HeldRun:
    """A final run in the store: its row, and the study that it was run for, without `-final`."""

    study: str
    row: Mapping[str, Any]


def identity_of_final(experiment: Experiment) -> str:
    """Return the hash of an experiment as a final run has it: a final run trains on all training images."""
    return experiment.with_values({"validation.fraction": 0.0}).identity()


def final_rows(store: ResultsStore) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of all final runs of tables, by study, without `-final`."""
    names = [name for name in study_names(store.location) if name.startswith(STUDY_PREFIX)]
    return {
        name.removesuffix(FINAL_SUFFIX): store.trials(name).to_pylist()
        for name in names
        if name.endswith(FINAL_SUFFIX)
    }


def completed_runs(rows: Mapping[str, list[dict[str, Any]]]) -> dict[RunKey, list[HeldRun]]:
    """Return the completed runs among `final_rows`; a list holds several where tables ran the same twice."""
    found: dict[RunKey, list[HeldRun]] = {}
    for study, own in rows.items():
        for row in own:
            if row["status"] == "completed":
                found.setdefault((row["config"], row["seed"]), []).append(HeldRun(study, row))
    return found


def plan_search(
    plan: TablePlan, cell: CellPlan, results: str | Path, data_root: Path | None = None, **more: Any
) -> SweepPlan:
    """Return the plan of a tuned row's search; `more` are further arguments of `plan_sweep`."""
    assert cell.experiment is not None, "the cell runs"
    assert plan.table.run.tune is not None, "the table has a searched form"
    return plan_sweep(
        cell.experiment.method,
        cell.experiment.dataset,
        trials=plan.trials,
        values=cell.settings,
        metric=plan.table.run.tune.metric,
        data_root=data_root,
        results=results,
        name=cell.study,
        **more,
    )


def search_held(
    plan: TablePlan, cell: CellPlan, store: ResultsStore, data_root: Path | None = None
) -> str | None:
    """Return the study that holds the search of a tuned row; None where there is none.

    The study is the row's own, else one of another table that searched the same. It may be incomplete.
    """
    assert cell.experiment is not None, "the cell runs"
    names = study_names(store.location)
    if cell.study in names:
        return cell.study
    others = [n for n in names if n.startswith(STUDY_PREFIX) and not n.endswith(FINAL_SUFFIX)]
    records = [store.study(name) for name in others]
    wanted = (cell.experiment.method, cell.experiment.dataset)
    alike = [one for one in records if (one.method, one.dataset) == wanted and _of_our_series(one)]
    if not alike:
        return None
    ours = _searched_by(plan_search(plan, cell, store.location.uri, data_root).record())
    return next((record.name for record in alike if _searched_by(record) == ours), None)


def _of_our_series(record: StudyRecord) -> bool:
    """Whether this contrasweep reads what the one that made the study wrote, and can continue it."""
    return same_series(record.versions.get("contrasweep", "unknown"), package_versions()["contrasweep"])


def _searched_by(record: StudyRecord) -> dict[str, Any]:
    """Return everything that decides what a search finds, as JSON holds it."""
    fields = {"method", "dataset", "experiment", "space", "search"}
    content: dict[str, Any] = json.loads(record.model_dump_json(include=fields))
    content["search"] = {k: v for k, v in content["search"].items() if k not in _OF_THE_MACHINE}
    return content
