"""Damaged and foreign files of experiments: refused in one line before anything trains."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from contrasweep.tuning.errors import SweepFailed
from contrasweep.tuning.planning.best_config import best_yaml
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.results.selection import SelectedTrial
from tests.fuzz.harness import fuzz, random_of
from tests.fuzz.yaml_files import damaged

CASES = 60
EXPERIMENTS = tuple(
    resolve(method, data, {"epochs": 1})
    for method, data in (("fair-cclk", "colour-digits"), ("idfd", "digits"), ("herocon", "two-view-digits"))
)


@pytest.fixture(autouse=True)
def in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_damaged_experiments(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    def nothing(*_: Any, **__: Any) -> Iterator[Any]:
        return iter(())

    monkeypatch.setattr("contrasweep.tuning.ray.one_run.pretrain", nothing)
    wholes = [yaml.safe_dump(one.model_dump(mode="json"), sort_keys=False) for one in EXPERIMENTS]
    for case in range(CASES * times):
        draws = random_of("experiment", case)
        content, what = damaged(draws.choice(wholes), draws)
        Path("experiment.yaml").write_bytes(content)
        fuzz("train", "experiment.yaml", allowed=(0, 2), case=f"case {case}: {what}")


def test_damaged_best_files(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """A file that is taken gets as far as Ray, which does not start here: exit code 1."""

    def not_started(*_: Any, **__: Any) -> None:
        raise SweepFailed("Ray did not start")

    monkeypatch.setattr("contrasweep.tuning.ray.cluster.start_ray", not_started)
    wholes = [best_yaml(_selected(one), {}) for one in EXPERIMENTS]
    for case in range(CASES * times):
        draws = random_of("best", case)
        content, what = damaged(draws.choice(wholes), draws)
        Path("best.yaml").write_bytes(content)
        # Another folder now and then: what an earlier case left in it may refuse a later one.
        options = ("--seeds", "2", "--results", f"results-{case // 5}")
        fuzz("run", "best.yaml", *options, allowed=(1, 2), case=f"case {case}: {what}")


def _selected(experiment: Any) -> SelectedTrial:
    names = [*experiment.hyperparameters, "optimizer.lr", "views.min_crop"]
    values = {name: experiment.value(name) for name in names}
    return SelectedTrial("study", 3, values, experiment, "val.accuracy", 0.9, 0.8, {})
