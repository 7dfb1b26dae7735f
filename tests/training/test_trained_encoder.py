"""The encoder of a single run: its file has the weights that the run scored, and other commands take it."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file
from typer.testing import CliRunner

from contrasweep.models import build_encoder, load_encoder
from contrasweep.tuning.cli import app
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.pretrain import pretrain
from contrasweep.tuning.training.trained_encoder import encoder_file_of

FEW = {"epochs": 2, "batch_size": 64, "probes.max_steps": 5}


@pytest.mark.parametrize(
    ("method", "dataset", "values"),
    [
        ("infonce", "digits", {"optimizer.ema": 0.9, "encoder.mean": [0.4], "encoder.std": [0.3]}),
        ("byol", "digits", {}),
        ("herocon", "two-view-digits", {}),
    ],
)
def test_a_checkpoint_has_the_encoder_of_its_run(
    tmp_path: Path, method: str, dataset: str, values: dict[str, object]
) -> None:
    experiment = resolve(method, dataset, {**FEW, **values})
    *_, last = pretrain(experiment)
    file = tmp_path / "encoder.safetensors"
    file.write_bytes(encoder_file_of(last.checkpoint(), experiment))
    expected, found = last.objective.encoder.state_dict(), load_encoder(file).state_dict()
    assert expected.keys() == found.keys()
    for name, weights in expected.items():
        assert torch.equal(found[name], weights), name


def test_the_file_that_a_run_began_with_may_be_gone(tmp_path: Path) -> None:
    start = tmp_path / "start.pt"
    torch.save(build_encoder("small-conv", 1, 8).state_dict(), start)
    values = {"encoder.name": "small-conv", "encoder.weights": str(start), "epochs": 1}
    experiment = resolve("infonce", "digits", {**FEW, **values})
    first = next(iter(pretrain(experiment)))
    start.unlink()
    assert encoder_file_of(first.checkpoint(), experiment) == first.encoder_file()


def test_train_writes_the_encoder_now_or_from_a_finished_checkpoint(tmp_path: Path) -> None:
    experiment, first, again = (str(tmp_path / name) for name in ("e.yaml", "first", "again"))
    Path(experiment).write_text("{method: infonce, dataset: digits, epochs: 1, batch_size: 256}")
    for output in (first, again):
        words = ["train", experiment, "--checkpoint", str(tmp_path / "run.pt"), "-o", output]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        assert f"Wrote {output}: the trained encoder" in done.output
    assert "nothing was left to train" in done.output
    kept, later = load_file(first), load_file(again)
    assert all(torch.equal(kept[name], weights) for name, weights in later.items())
    embedded = CliRunner().invoke(app, ["embed", first, "digits", "-o", str(tmp_path / "features.parquet")])
    assert embedded.exit_code == 0, embedded.output


def test_the_experiment_of_a_best_configuration_is_trained(tmp_path: Path) -> None:
    best: dict[str, Any] = {
        "study": "s",
        "experiment": resolve("infonce", "digits", {**FEW, "epochs": 1}).model_dump(mode="json"),
    }
    (tmp_path / "best.yaml").write_text(yaml.safe_dump(best))
    done = CliRunner().invoke(
        app, ["train", str(tmp_path / "best.yaml"), "--set", "batch_size=256", "--json"]
    )
    assert done.exit_code == 0, done.output
    trained = json.loads(done.stdout)["experiment"]
    assert trained == {**best["experiment"], "batch_size": 256}


@pytest.mark.parametrize("other", ["e.yaml", "run.pt"])
def test_what_is_read_is_not_written_over(tmp_path: Path, other: str) -> None:
    for name in ("e.yaml", "run.pt"):
        (tmp_path / name).write_text("{method: infonce, dataset: digits}")
    words = ["train", str(tmp_path / "e.yaml"), "--checkpoint", str(tmp_path / "run.pt")]
    done = CliRunner().invoke(app, [*words, "-o", str(tmp_path / other)])
    assert done.exit_code == 2
    assert "give another file" in done.output
    assert (tmp_path / other).read_text() == "{method: infonce, dataset: digits}"


def test_a_place_that_cannot_be_written_is_refused_before_training(tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text("{method: infonce, dataset: digits}")
    done = CliRunner().invoke(app, ["train", str(tmp_path / "e.yaml"), "-o", str(tmp_path)])
    assert done.exit_code == 2
    assert "-o" in done.output
    assert "epoch" not in done.output
