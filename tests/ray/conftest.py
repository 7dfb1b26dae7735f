"""The undisturbed study with which the disturbed ones are compared."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from in_process import without_ray
from studies import tiny_plan

from contrasweep.tuning.progress.states import SweepProgress
from contrasweep.tuning.ray.sweep import run_sweep


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[SweepProgress]]:
    """A results folder with an undisturbed study, and the progress that was shown."""
    results = tmp_path_factory.mktemp("finished")
    shown: list[SweepProgress] = []
    with without_ray():
        run_sweep(tiny_plan(results), progress=shown.append)
    return results, shown


@pytest.fixture
def in_process() -> Iterator[None]:
    """Sweeps of the test run without Ray."""
    with without_ray():
        yield
