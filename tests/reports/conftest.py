"""Fixtures that write the studies of the tests of reports."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from contrasweep.tuning.store import Location, ResultsStore, open_location
from tests.studies import Run, WrittenStudy, make_final_record, make_record

WriteStudy = Callable[..., str]


@pytest.fixture
def location(tmp_path: Path) -> Location:
    return open_location(tmp_path / "results", writable=True)


@pytest.fixture
def store(location: Location) -> ResultsStore:
    return ResultsStore(location)


@pytest.fixture
def write_study(location: Location) -> WriteStudy:
    """Write a study of these runs; `changes` are those of `make_record`."""

    def write(runs: Sequence[Run], name: str = "demo", search: Any = None, **changes: Any) -> str:
        record = make_record(name, search={"trials": max(1, len(runs)), **(search or {})}, **changes)
        WrittenStudy(location, record).write(*runs)
        return name

    return write


@pytest.fixture
def write_final(location: Location) -> WriteStudy:
    """Write final runs of trial 0: pairs of (test accuracy, that of the untrained encoder), seeds from 1."""

    def write(scores: Sequence[tuple[float, float]], of: str = "demo", command: str = "") -> str:
        names = ("test.accuracy", "test.untrained_accuracy")
        record = make_final_record(of + "-final", metrics=names, command=command)
        runs = [
            Run(0, seed, final=dict(zip(names, pair, strict=True)), phase="final")
            for seed, pair in enumerate(scores, 1)
        ]
        WrittenStudy(location, record).write(*runs)
        return record.name

    return write
