"""The command that starts a sweep again says what the study's record says."""

import json
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from contrasweep.tuning.cli import app
from contrasweep.tuning.experiment.conditions import Condition
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.spaces import space_of
from contrasweep.tuning.results.commands import NOT_WRITTEN, option_of, sweep_command
from contrasweep.tuning.store import StudyRecord
from contrasweep.tuning.store.record import SearchRecord, WarmStartRecord
from tests.studies import small_plan

CHANGED: dict[str, tuple[Any, list[str]]] = {
    "trials": (7, ["7"]),
    "metric": ("val.colour_mse", ["val.colour_mse"]),
    "sampler": ("random", ["random"]),
    "grid_points": (3, ["3"]),
    "scheduler": ("none", ["none"]),
    "asha_metric": ("val.loss", ["val.loss"]),
    "eta": (2, ["2"]),
    "grace": (5, ["5"]),
    "seed": (8, ["8"]),
    "seeds": (4, ["4"]),
    "storage": ("sqlite:///a b.db", ["sqlite:///a b.db"]),
    "warm_start": (WarmStartRecord(studies=("one", "two")), ["one,two"]),
    "given": ({"a.b": "true", "c": (1, 2.5), "d": 1e-5}, ["a.b='true'", "c=[1, 2.5]", "d=1.0e-05"]),
    "concurrency": (6, ["6"]),
    "cpus": (2, ["2"]),
    "workers": (2, ["2"]),
    "gpus": (0.5, ["0.5"]),
    "max_failures": (3, ["3"]),
    "trial_timeout": (60.0, ["60.0"]),
    "budget": (28_800.0, ["28800s"]),
    "stop_when": ("gain<noise for 20", ["gain<noise for 20"]),
    "keep_weights": (2, ["2"]),
    "keep": ((Condition(metric="val.accuracy", comparison=">=", bound=0.1),), ["val.accuracy>=0.1"]),
}
"""For each field of a search another value than the usual one, and the words of its option."""


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> StudyRecord:
    return small_plan(tmp_path_factory.mktemp("results"), trials=5, concurrency=1).record()


def command(record: StudyRecord) -> str | None:
    return sweep_command(record, space_of(record.method, record.dataset, None, {"epochs": 2}))


def planned_by(said: str) -> StudyRecord:
    """Return the record of the study that a command would begin."""
    done = CliRunner().invoke(app, [*shlex.split(said)[1:], "--dry-run", "--json"])
    assert done.exit_code == 0, done.output
    return StudyRecord.model_validate_json(json.dumps(json.loads(done.stdout)["study"]))


def test_every_field_of_a_search_is_written_or_named() -> None:
    assert CHANGED.keys() | NOT_WRITTEN.keys() == SearchRecord.model_fields.keys()
    assert not CHANGED.keys() & NOT_WRITTEN.keys()
    command = typer.main.get_command(app).commands["sweep"]  # type: ignore[attr-defined]
    options = {word for one in command.params for word in one.opts}
    assert {option_of(field) for field in CHANGED} <= options


@pytest.mark.parametrize("field", CHANGED)
def test_a_field_that_differs_is_written(record: StudyRecord, field: str) -> None:
    value, texts = CHANGED[field]
    words = shlex.split(command(record.with_search(**{field: value})) or "")
    option = option_of(field)
    assert [after for word, after in pairwise(words) if word == option] == texts


def test_what_is_usual_is_left_out_and_the_command_runs(
    record: StudyRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = command(record)
    searched = "--trials 5 --metric val.accuracy --sampler curves --scheduler asha"
    others = "--seeds 1 --epochs 2 --concurrency 1 --keep-weights 1"
    assert said == f"contrasweep sweep fair-cclk --data colour-digits {searched} {others}"
    assert planned_by(said).require_search() == record.require_search()


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize(("split", "fraction"), [("class", 0.3), ("folds", 0.25)])
def test_what_is_usual_elsewhere_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, concurrency: int, split: str, fraction: float
) -> None:
    """With many trials at once another scheduler is usual, and with folds as many seeds as folds."""
    monkeypatch.chdir(tmp_path)
    options = {"scheduler": "asha", "seeds": 1, "concurrency": concurrency}
    held_out = {"validation.split": split, "validation.fraction": fraction}
    record = plan_sweep("herocon", "two-view-digits", trials=5, values=held_out, **options).record()
    said = sweep_command(record, space_of("herocon", "two-view-digits", None, held_out))
    assert planned_by(said or "").require_search() == record.require_search()


def test_no_option_is_lost_between_the_command_and_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rules: dict[str, Any] = {
        "trials": 7,
        "sampler": "random",
        "metric": "val.accuracy",
        "asha_metric": "val.colour_mse",
        "eta": 2,
        "grace": 1,
        "seed": 8,
        "seeds": 2,
        "max_failures": 3,
        "trial_timeout": 60.0,
        "budget": 28_800.0,
        "stop_when": "gain<noise for 20",
        "keep_weights": 2,
        "storage": f"sqlite:///{tmp_path / 'watch.db'}",
    }
    record = small_plan(tmp_path / "results", **rules, concurrency=1, keep=["val.accuracy>=0.1"]).record()
    search = record.require_search()
    assert {name: getattr(search, name) for name in rules} == rules
    assert planned_by(command(record) or "").require_search() == search


def test_a_space_or_configurations_of_its_own_are_no_command(record: StudyRecord) -> None:
    assert command(record.with_search(enqueued=({"lam": 0.1},))) is None
    other = record.space.pin("temperature", 0.3)
    assert command(record.model_copy(update={"space": other})) is None
