from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from written_studies import Written, make_record, write_trial

from contrasweep.tuning.store import Location, ResultsStore, TrialInfo, TrialWriter, open_location, save_study

WriteStudy = Callable[..., str]


@pytest.fixture
def location(tmp_path: Path) -> Location:
    return open_location(tmp_path / "results", writable=True)


@pytest.fixture
def store(location: Location) -> ResultsStore:
    return ResultsStore(location)


@pytest.fixture
def write_study(location: Location) -> WriteStudy:
    """Write a study of `Written` trials; trial n starts 10 n seconds after the study and takes 8 seconds."""

    def write(trials: Sequence[Written], name: str = "demo", **changes: Any) -> str:
        record = make_record(name, len(trials), **changes)
        save_study(location, record)
        for number, trial in enumerate(trials):
            write_trial(location, record, number if trial.trial is None else trial.trial, trial)
        return name

    return write


@pytest.fixture
def write_final(location: Location) -> WriteStudy:
    """Write final runs of trial 0: pairs of (test accuracy, that of the untrained encoder), seeds from 1."""

    def write(scores: Sequence[tuple[float, float]], of: str = "demo") -> str:
        names = ("test.accuracy", "test.untrained_accuracy")
        record = make_record(of + "-final", 0, metrics=names, search={"metric": "test.accuracy"}, space={})
        save_study(location, record)
        for seed, pair in enumerate(scores, 1):
            info = TrialInfo(0, seed, "final", "abc", {}, epochs=2)
            writer = TrialWriter(location, record, info, 1)
            writer.start()
            writer.finish("completed", dict(zip(names, pair, strict=True)))
        return record.name

    return write
