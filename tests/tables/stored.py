"""Write final runs and searches into a store without training, as `contrasweep table` leaves them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from contrasweep.data import dataset_spec
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.metrics import final_metrics
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.store import FINAL_SUFFIX, ResultsStore, StudyRecord, StudySchema
from contrasweep.tuning.tables.planned import CellPlan, TablePlan
from tests.studies import PlannedStudy, Run, WrittenStudy, make_final_record

Score = Callable[[CellPlan, int], float | None]
"""The accuracy of the run of a cell with a seed; None where the run failed."""


def score(cell: CellPlan, seed: int) -> float:
    """The accuracy of a row of `cclk-t3`; it rises with the seed."""
    return {"infonce": 0.6, "fair-infonce": 0.7, "fair-cclk": 0.8}[cell.row] + seed / 100


def store_runs(plan: TablePlan, results: Path, score: Score, seeds: range | None = None) -> ResultsStore:
    """Write the final runs of a plan with `seeds` (by default all), as if each took ten seconds.

    Every score of a trained encoder is `score`, every score of an untrained encoder 0.5.
    """
    for study, cells in plan.studies.items():
        name = study + FINAL_SUFFIX
        written = WrittenStudy(results, _record(name, cells))
        chosen = seeds or range(1, plan.seeds + 1)
        written.write(
            *(_run(written.record, cell, seed, score(cell, seed)) for cell in cells for seed in chosen)
        )
    return ResultsStore(results)


def store_search(plan: SweepPlan) -> None:
    """Write a search of two completed trials; the second one is better."""
    PlannedStudy(plan).write(
        *(
            Run(values={"temperature": 0.1 + trial / 10}, final={"val.accuracy": accuracy})
            for trial, accuracy in enumerate((0.6, 0.7))
        )
    )


def _record(name: str, cells: list[CellPlan]) -> StudyRecord:
    experiment = cells[0].experiment
    assert experiment is not None
    values = {k: v for cell in cells for k, v in cell.config.values.items()}
    kinds: Mapping[type, Any] = {int: "int", float: "float", str: "string"}
    return make_final_record(
        name,
        method=experiment.method,
        dataset=experiment.dataset,
        experiment=experiment.model_dump(mode="json"),
        columns=StudySchema(
            hyperparameters={k: kinds[type(v)] for k, v in values.items()},
            metrics=final_metrics(METHODS[experiment.method], dataset_spec(experiment.dataset)),
        ),
    )


def _run(record: StudyRecord, cell: CellPlan, seed: int, score: float | None) -> Run:
    assert cell.experiment is not None
    experiment = cell.experiment.with_values({"seed": seed, "validation.fraction": 0.0})
    run = Run(cell.trial, seed, cell.config.values, phase="final", config=experiment.identity())
    if score is None:
        return replace(run, status="failed", error="loss nan at epoch 1")
    names = [name for name in record.columns.metrics if name.startswith("test.")]
    metrics = {name: 0.5 if "untrained" in name else score for name in names}
    return replace(run, curve={experiment.epochs: metrics}, final=metrics, epoch_seconds=10.0)
