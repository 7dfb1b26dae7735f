"""Write final runs and searches into a store without training, as `contrasweep table` leaves them."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from contrasweep.data import dataset_spec
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.metrics import final_metrics
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.store import (
    FINAL_SUFFIX,
    ResultsStore,
    StudyRecord,
    StudySchema,
    TrialInfo,
    TrialWriter,
    open_location,
    save_study,
    study_names,
)
from contrasweep.tuning.tables.plan import CellPlan, TablePlan

Score = Callable[[CellPlan, int], float | None]
"""The accuracy of the run of a cell with a seed; None where the run failed."""


def store_runs(plan: TablePlan, results: Path, score: Score, seeds: range | None = None) -> ResultsStore:
    """Write the final runs of a plan with `seeds` (by default all), as if each took ten seconds.

    Every score of a trained encoder is `score`, every score of an untrained encoder 0.5.
    """
    location = open_location(results, writable=True)
    for study, cells in plan.studies.items():
        record = _record(study + FINAL_SUFFIX, cells)
        if record.name not in study_names(location):
            save_study(location, record)
        for cell in cells:
            for seed in seeds or range(1, plan.seeds + 1):
                _write(location, record, cell, seed, score(cell, seed))
    return ResultsStore(location)


def store_search(plan: SweepPlan) -> None:
    """Write a search of two completed trials; the second one is better."""
    location, record = open_location(plan.results, writable=True), plan.record()
    save_study(location, record)
    for trial, accuracy in enumerate((0.6, 0.7)):
        values = {**plan.space.defaults(), "temperature": 0.1 + trial / 10}
        info = TrialInfo(trial, 0, "search", plan.experiment_of(values).identity(), values, 3)
        writer = TrialWriter(location, record, info, attempt=1)
        writer.start()
        writer.finish("completed", {"val.accuracy": accuracy})


def _record(name: str, cells: list[CellPlan]) -> StudyRecord:
    experiment = cells[0].experiment
    assert experiment is not None
    values = {k: v for cell in cells for k, v in cell.config.values.items()}
    kinds = {int: "int", float: "float", str: "string"}
    return StudyRecord(
        name=name,
        created=datetime.now(UTC),
        command="test",
        method=experiment.method,
        dataset=experiment.dataset,
        experiment=experiment.model_dump(mode="json"),
        space={},
        search={},
        columns=StudySchema(
            hyperparameters={k: kinds[type(v)] for k, v in values.items()},  # type: ignore[misc]
            metrics=final_metrics(METHODS[experiment.method], dataset_spec(experiment.dataset)),
        ),
        versions={"contrasweep": "0.1.0", "torch": "2.9.0"},
        host="here",
    )


def _write(location, record, cell, seed, score):  # type: ignore[no-untyped-def]
    experiment = cell.experiment.with_values({"seed": seed, "validation.fraction": 0.0})
    info = TrialInfo(cell.trial, seed, "final", experiment.identity(), cell.config.values, experiment.epochs)
    writer = TrialWriter(location, record, info, attempt=1)
    writer.start()
    if score is None:
        writer.finish("failed", {}, error="loss nan at epoch 1")
        return
    names = [name for name in record.columns.metrics if name.startswith("test.")]
    metrics = {name: 0.5 if "untrained" in name else score for name in names}
    writer.add_epoch(experiment.epochs, metrics, seconds=10, train_seconds=8)
    writer.finish("completed", metrics)
