"""`contrasweep replay`: its table, its JSON, and what it refuses."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from contrasweep.search_spaces import Space
from contrasweep.tuning.cli import app
from contrasweep.tuning.replay.recording import read_recording
from tests.replay.recorded import recorded
from tests.replay.test_recording import study


def call(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["replay", *words])
    return done.exit_code, " ".join(done.output.split())


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("recorded") / "invented.parquet"
    recorded(again=20).write(path)
    return str(path)


def test_the_table_and_the_json_have_every_search(file: str) -> None:
    few = (file, "--seeds", "2", "--full-trials", "3", "--workers", "3")
    code, told = call(*few)
    assert code == 0
    assert "tpe, asha" in told
    assert "random, none" in told
    assert "after parts of 27 epochs" in told
    done = CliRunner().invoke(app, ["replay", *few, "--samplers", "random", "--json"])
    content = json.loads(done.stdout)["studies"][0]
    assert [one["search"] for one in content["searches"]] == ["random, asha", "random, none"]
    assert content["recorded"] == 60
    assert all(one["after"]["1"]["mean"] is not None for one in content["searches"])


def test_a_study_is_recorded_in_a_file(tmp_path: Path) -> None:
    study(tmp_path)
    target = tmp_path / "curves.parquet"
    code, told = call("demo", "--results", str(tmp_path), "-o", str(target))
    assert code == 0
    assert "24 trials of 2 epochs" in told
    assert read_recording(target).name == "demo"


def test_a_sampler_that_cannot_search_the_space_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the surrogate is fitted, and before other samplers have searched."""
    space = Space.parse({"kernel": {"choice": ["rbf", "cosine"], "default": "rbf"}})
    held = recorded()
    path = tmp_path / "choices.parquet"
    replace(held, space=space, codes=held.codes[:, :1]).write(path)
    monkeypatch.delattr("contrasweep.tuning.replay.workload.Workload.of")
    code, output = call(str(path), "--samplers", "tpe,cmaes")
    assert code == 2
    assert "the sampler cmaes needs a range" in output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--samplers", "tpee"), "Did you mean 'tpe'?"),
        (("--samplers", "grid"), "it proposes a fixed list"),
        (("--samplers", "tpe,tpe"), "each sampler once"),
        (("--schedulers", "ahsa"), "Did you mean 'asha'?"),
        (("--schedulers", "asha:eta=x"), "given 'eta=x'; allowed: asha or asha+curves, with eta=N"),
        (("--schedulers", "none:eta=3"), "given 'eta=3'"),
        (("--schedulers", "asha:eta=2:eta=3"), "given 'eta=3'"),
        (("--schedulers", "asha:grace=9"), "a trial has 9 epochs, so none would be stopped"),
        (("--schedulers", "asha:eta=1"), "eta"),
        (("--seeds", "1"), "seeds"),
        (("--full-trials", "3"), "--full-trials 3 is fewer than --workers 4"),
        (("--again", "other"), "a recording has its second seeds in it"),
        (("-o", "x.csv"), ".parquet"),
    ],
)
def test_wrong_options_are_refused(file: str, words: tuple[str, ...], told: str) -> None:
    code, output = call(file, *words)
    assert code == 2
    assert told in output
