from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from contrasweep.tuning.store import (
    Location,
    ResultsStore,
    StudyRecord,
    StudySchema,
    TrialInfo,
    TrialWriter,
    open_location,
    save_study,
)
from contrasweep.tuning.store.filesystem import ONCE
from tests.studies import make_record


@pytest.fixture
def columns() -> StudySchema:
    return StudySchema(
        hyperparameters={
            "kernel": "string",
            "sigma2": "float",
            "optimizer.lr": "float",
            "layers": "int",
            "flip": "bool",
        },
        metrics=("loss", "val.accuracy"),
    )


@pytest.fixture
def location(tmp_path: Path) -> Location:
    """A results folder without retries: a test that breaks it does not wait."""
    return replace(open_location(tmp_path / "results", writable=True), retry=ONCE)


@pytest.fixture
def record(location: Location, columns: StudySchema) -> StudyRecord:
    """A saved study called ``digits-1``."""
    study = make_record(
        "digits-1",
        dataset="digits",
        space={
            "kernel": {"choice": ["rbf", "cosine"], "default": "rbf"},
            "sigma2": {"log": [1.0, 1e4], "default": 100.0},
            "optimizer.lr": {"uniform": [0.01, 0.3], "default": 0.1},
            "layers": {"int": [0, 1000], "default": 2},
            "flip": {"choice": [True, False], "default": True},
        },
        experiment={"epochs": 10, "optimizer": {"lr": 0.3}},
        search={"rung_metric": None},
        columns=columns,
    )
    save_study(location, study)
    return study


@pytest.fixture
def info() -> Callable[..., TrialInfo]:
    def make(trial: int = 0, seed: int = 0, **hyperparameters: object) -> TrialInfo:
        return TrialInfo(trial, seed, "search", "abc123", hyperparameters, epochs=10)

    return make


@pytest.fixture
def attempt(
    location: Location, record: StudyRecord, info: Callable[..., TrialInfo]
) -> Callable[..., TrialWriter]:
    """Writes and flushes an attempt with the given epochs; its accuracy contains the attempt's number."""

    def write(
        number: int, epochs: range, end: str | None = None, trial: int = 0, resumed: int | None = None
    ) -> TrialWriter:
        writer = TrialWriter(location, record, info(trial, kernel="rbf"), number)
        writer.start(epoch=resumed)
        for epoch in epochs:
            writer.add_epoch(epoch, {"val.accuracy": number + epoch / 100}, seconds=1.0, train_seconds=0.75)
        writer.flush()
        if end is not None:
            writer.finish(end, {"val.accuracy": float(number)})
        return writer

    return write


@pytest.fixture
def store(location: Location) -> ResultsStore:
    return ResultsStore(location)
