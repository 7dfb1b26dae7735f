"""`contrasweep export` writes an encoder's files and card whole, or refuses before any of it."""

import errno
import json
import re
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from typer.testing import CliRunner, Result

import contrasweep
from contrasweep.models import build_encoder, encoder_bytes, read_encoder
from contrasweep.models.formats import FORMATS, as_onnx, network_of
from contrasweep.tuning.cli import app
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.export import checks
from contrasweep.tuning.export.source import source_of_study
from contrasweep.tuning.results.encoders import runs_with_encoders
from contrasweep.tuning.store import ResultsStore
from contrasweep.tuning.store.layout import encoder_path
from contrasweep.tuning.store.removal import delete_study
from contrasweep.tuning.transfer.sources import encoder_sources
from tests.studies import PlannedStudy, Run, WrittenStudy, make_final_record, scored, small_plan

Command = Callable[..., Result]
SCORES = {(1, 5): 0.5, (1, 6): 0.7, (1, 7): 0.6, (0, 5): 0.9}


@cache
def encoder_file(seed: int) -> bytes:
    torch.manual_seed(seed)
    experiment = Experiment(method="infonce", dataset="digits", seed=seed).model_dump_json()
    return encoder_bytes(
        build_encoder("resnet18", 3, 32), name="resnet18", channels=3, image_size=32, experiment=experiment
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search, whose best trial is 1, and final runs of trials 0 and 1; commands only read them."""
    folder = tmp_path_factory.mktemp("export") / "results"
    search = PlannedStudy(small_plan(folder))
    search.write(scored(), scored((0.5, 0.6, 0.9)))
    metrics = ("test.accuracy", "test.untrained_accuracy")
    record = make_final_record("study-1-final", metrics=metrics, created=search.record.created)
    final = WrittenStudy(folder, record)
    for (trial, seed), score in SCORES.items():
        found = {"test.accuracy": score, "test.untrained_accuracy": 0.4}
        final.write(Run(trial, seed, final=found, phase="final", config=f"c{trial}"))
        final.location.write(encoder_path("study-1-final", trial, seed), encoder_file(seed))
    return folder


@pytest.fixture
def export(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command in a folder where `results` are those."""
    monkeypatch.chdir(tmp_path)
    Path("results").symlink_to(results)
    Path("a.safetensors").write_bytes(b"nothing")
    return lambda *words: CliRunner().invoke(app, ["export", *words])


def weights(folder: str) -> bytes:
    return Path(folder, "model.safetensors").read_bytes()


def test_of_a_study_the_best_trial_and_its_first_seed_are_taken(export: Command) -> None:
    done = export("study-1", "--format", "torchvision", "-o", "out")
    assert done.exit_code == 0, done.output
    assert "study-1-final, trial 1, seed 5" in done.output
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
    ]
    card = Path("out/README.md").read_text()
    (row,) = (line for line in card.splitlines() if line.startswith("| accuracy"))
    assert row == "| accuracy | 0.5 | 0.60 ± 0.10 (n = 3) | 0.3516 to 0.8484 | 0.4 ± 0 (n = 3) |"
    assert "Intervals need at least" not in card
    assert "dataset: digits" in card
    assert "the shorter side is resized and the centre square cut out; a square image stays whole. It" in card
    assert list(Path().glob(".out*")) == []
    given = json.loads(Path("out/config.json").read_text())["preprocessing"]
    assert (given["size"], given["mean"], given["std"]) == (32, [0.0] * 3, [1.0] * 3)


def test_a_file_of_any_name_is_an_encoder_file_to_every_command(export: Command) -> None:
    Path("encoder.bin").write_bytes(encoder_file(1))
    assert export("encoder.bin", "--format", "timm", "-o", "out").exit_code == 0
    assert [one.place for one in encoder_sources(["encoder.bin"], "results")] == ["encoder.bin"]


def test_the_card_says_which_part_of_an_image_the_encoder_saw(export: Command) -> None:
    experiment = Experiment(method="infonce", dataset="digits", probes={"centre": 0.875}).model_dump_json()
    network = build_encoder("resnet18", 3, 32)
    content = encoder_bytes(network, name="resnet18", channels=3, image_size=32, experiment=experiment)
    Path("cut.safetensors").write_bytes(content)
    assert export("cut.safetensors", "--format", "torchvision", "-o", "out").exit_code == 0
    assert (
        "Of its sides the central 0.875 is kept. The square is resized" in Path("out/README.md").read_text()
    )


@pytest.mark.parametrize(
    ("dataset", "first"),
    [
        ("digits", " It is resized to 8 x 8 pixels first, as those of the training were."),
        ("image-folder:path=absent,size=16", " It is resized to 16 x 16 pixels first, as"),
        ("image-folder:path=absent,size=32", " The square is resized to 32 x 32 pixels"),
        ("of-a-plug-in", " The square is resized to 32 x 32 pixels"),
    ],
)
def test_the_card_says_that_images_were_resized_twice(dataset: str, first: str, export: Command) -> None:
    """Resized once, an image has other pixels than those of the training."""
    experiment = Experiment(method="infonce", dataset=dataset).model_dump_json()
    network = build_encoder("resnet18", 3, 32)
    content = encoder_bytes(network, name="resnet18", channels=3, image_size=32, experiment=experiment)
    Path("a.safetensors").write_bytes(content)
    assert export("a.safetensors", "--format", "torchvision", "-o", "out").exit_code == 0
    assert f"a square image stays whole.{first}" in Path("out/README.md").read_text()


def test_the_example_of_onnx_runs_with_what_its_extra_installs() -> None:
    root = Path(contrasweep.__file__).parents[2]
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    imported = set(re.findall(r"^(?:import|from) (\w+)", as_onnx._EXAMPLE, re.MULTILINE))
    named = {re.split(r"[>=<]", requirement)[0] for requirement in extras["onnx"]}
    assert imported <= named


def test_the_card_of_a_snapshot_says_after_which_epoch_it_was_taken(export: Command) -> None:
    Path("epoch-00003.safetensors").write_bytes(encoder_file(1))
    assert export("epoch-00003.safetensors", "--format", "timm", "-o", "out").exit_code == 0
    whole = Experiment(method="infonce", dataset="digits").epochs
    assert f"on digits for 3 of {whole} epochs" in Path("out/README.md").read_text()


def test_the_function_writes_what_the_command_does(export: Command) -> None:
    assert export("study-1", "--format", "torchvision", "-o", "out").exit_code == 0
    written = contrasweep.export_encoder("study-1", "torchvision", "same")
    assert written == sorted(path.name for path in Path("out").iterdir())
    assert weights("same") == weights("out")
    with pytest.raises(InputError, match="torchvision"):
        contrasweep.export_encoder("study-1", "torchvison", "none")


def test_another_trial_and_seed_and_the_study_of_the_final_runs(export: Command) -> None:
    assert export("study-1-final", "--format", "timm", "-o", "a", "--seed", "7").exit_code == 0
    file = encoder_path("study-1-final", 1, 7)
    assert export(f"results/{file}", "--format", "timm", "-o", "b").exit_code == 0
    assert weights("a") == weights("b")
    assert "None are known" in Path("b/README.md").read_text()
    assert export("study-1", "--format", "timm", "-o", "c", "--trial", "0").exit_code == 0
    assert "trial 0, seed 5" in Path("c/README.md").read_text()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["study-1", "--format", "tim"], "Did you mean 'timm'?"),
        (["study-2", "--format", "timm"], "Did you mean 'study-1'?"),
        (["study-1", "--format", "timm", "--trial", "4"], "no encoder of trial 4; it has those of 0, 1"),
        (["study-1", "--format", "timm", "--seed", "4"], "trial 1 with seed 4; it has 5, 6, 7"),
        (["a.safetensors", "--format", "timm", "--seed", "4"], "--seed go with a study"),
        (["a.safetensors", "--format", "timm"], "a.safetensors is not an encoder of contrasweep"),
        (["b.safetensors", "--format", "timm"], "there is no such file"),
        (
            ["results/studies/study-1.json", "--format", "timm"],
            "study-1.json is not an encoder",
        ),
        (["study-1", "--format", "timm", "--push", "name"], "--push takes OWNER/NAME, given 'name'"),
        (["study-1", "--format", "timm", "-o", "results"], "results has files in it"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_written(
    words: list[str], says: str, export: Command
) -> None:
    refused = export(*words, *([] if "-o" in words else ["-o", "out"]))
    assert refused.exit_code == 2, refused.output
    assert says in refused.output
    assert not Path("out").exists()


def test_a_study_without_encoders_says_how_to_make_one(export: Command, tmp_path: Path) -> None:
    plan = small_plan(tmp_path / "others")
    PlannedStudy(plan).write(scored())
    refused = export("study-1", "--format", "timm", "-o", "out", "--results", "others")
    assert refused.exit_code == 2
    assert "`contrasweep run study-1 --seeds 5 --results others`" in refused.output


def test_of_a_search_without_final_runs_the_best_kept_encoder_is_taken(
    export: Command, tmp_path: Path
) -> None:
    study = PlannedStudy(small_plan(tmp_path / "others"))
    study.write(scored((0.5, 0.6, 0.7)), scored((0.5, 0.6, 0.9)), scored((0.5, 0.6, 0.8)))
    for trial in (0, 2):
        study.location.write(encoder_path("study-1", trial, 0), encoder_file(trial))
    done = export("study-1", "--format", "timm", "-o", "out", "--results", "others")
    assert done.exit_code == 0, done.output
    assert "study-1, trial 2, seed 0" in done.output, "the best one, trial 1, has no encoder"
    card = Path("out/README.md").read_text()
    assert "On the validation split" in card
    assert "| accuracy | 0.8 | 0.5 (n = 1) |" in card
    assert (
        weights("out")
        == FORMATS["timm"].write(network_of(read_encoder(encoder_file(2), ""))).files["model.safetensors"]
    )


def test_an_export_that_fails_leaves_nothing(export: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr("contrasweep.tuning.export.folder.os.replace", full)
    assert export("study-1", "--format", "timm", "-o", "out").exit_code == 1
    assert not Path("out").exists()
    assert list(Path().glob(".out*")) == []


def test_it_is_sent_to_the_hub(export: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[object] = []
    api = SimpleNamespace(
        create_repo=lambda name, exist_ok: sent.append((name, exist_ok)),
        upload_folder=lambda folder_path, repo_id: sent.append((Path(folder_path).name, repo_id)),
    )
    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(HfApi=lambda: api))
    monkeypatch.setattr(checks, "find_spec", lambda name: object())
    done = export("study-1", "--format", "timm", "-o", "out", "--push", "me/mine")
    assert done.exit_code == 0, done.output
    assert sent == [("me/mine", True), ("out", "me/mine")]
    assert "https://huggingface.co/me/mine" in done.output


def test_a_hub_that_refuses_keeps_the_export(export: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("401: who are you")

    api = SimpleNamespace(create_repo=refuse)
    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(HfApi=lambda: api))
    monkeypatch.setattr(checks, "find_spec", lambda name: object())
    refused = export("study-1", "--format", "timm", "-o", "out", "--push", "me/mine")
    assert refused.exit_code == 1
    assert "401: who are you" in refused.output
    assert Path("out/model.safetensors").exists()


def test_without_the_hub_s_package_the_message_says_how_to_get_it(
    export: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    refused = export("study-1", "--format", "timm", "-o", "out", "--push", "me/mine")
    assert refused.exit_code == 2
    assert "pip install 'contrasweep[hub]'" in refused.output


def test_the_names_that_are_checked_early_are_those_of_the_formats() -> None:
    assert tuple(FORMATS) == checks.FORMAT_NAMES


@pytest.mark.parametrize("experiment", ["{", '{"method": "infonce", "dataset": "digits", "epoxes": 3}'])
def test_an_experiment_that_cannot_be_read_is_an_error_of_the_file(export: Command, experiment: str) -> None:
    encoder = build_encoder("resnet18", 3, 32)
    content = encoder_bytes(encoder, name="resnet18", channels=3, image_size=32, experiment=experiment)
    Path("other.safetensors").write_bytes(content)
    result = export("other.safetensors", "--format", "torchvision", "-o", "out")
    assert result.exit_code == 2
    assert "other.safetensors: the experiment in it: " in result.output
    assert not Path("out").exists()


def test_an_empty_folder_stays_the_same_folder(export: Command) -> None:
    folder = Path("there")
    folder.mkdir()
    number = folder.stat().st_ino
    assert export("study-1", "--format", "torchvision", "-o", "there").exit_code == 0
    assert folder.stat().st_ino == number
    assert (folder / "README.md").is_file()
    assert not [one for one in folder.iterdir() if one.name.startswith(".")]


def test_the_card_of_one_seed_of_a_trial_has_the_controls_of_that_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study = PlannedStudy(small_plan(tmp_path / "results", seeds=2))
    for seed, start in ((0, 0.5), (1, 0.25)):
        study.write(replace(scored((start, 0.6)), trial=0, seed=seed))
        study.location.write(encoder_path("study-1", 0, seed), encoder_file(seed))
    done = CliRunner().invoke(
        app, ["export", "study-1", "--format", "torchvision", "-o", "out", "--seed", "1"]
    )
    assert done.exit_code == 0, done.output
    card = Path("out/README.md").read_text()
    assert "chose this trial (by the mean over 2 seeds)" in card
    rows = [line for line in card.splitlines() if line.startswith(("| accuracy", "| ridge accuracy"))]
    assert rows == ["| accuracy | 0.6 | 0.25 (n = 1) |", "| ridge accuracy | 0.6 | 0.25 (n = 1) |"]


def test_the_card_says_what_untrained_is_of_an_encoder_that_started_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = Experiment(method="infonce", dataset="digits", encoder={"weights": "/x/start.pt"})
    network = build_encoder("resnet18", 3, 32)
    content = encoder_bytes(
        network, name="resnet18", channels=3, image_size=32, experiment=experiment.model_dump_json()
    )
    study = PlannedStudy(small_plan(tmp_path / "results"))
    study.write(scored())
    study.location.write(encoder_path("study-1", 0, 0), content)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["export", "study-1", "--format", "torchvision", "-o", "out"])
    assert done.exit_code == 0, done.output
    assert "Untrained means as loaded from /x/start.pt." in Path("out/README.md").read_text()


def test_runs_of_an_earlier_search_of_the_name_are_not_exported(tmp_path: Path) -> None:
    search = PlannedStudy(small_plan(tmp_path))
    search.write(scored())
    before = search.record.created - timedelta(seconds=1)
    final = WrittenStudy(tmp_path, make_final_record("study-1-final", created=before))
    final.write(Run(0, 5, final={"test.accuracy": 0.5}, phase="final"))
    final.location.write(encoder_path("study-1-final", 0, 5), encoder_file(5))
    with pytest.raises(InputError, match="study-1 has no encoder"):
        runs_with_encoders(search.store, "study-1")
    final.location.write(encoder_path("study-1", 0, 0), encoder_file(0))
    assert runs_with_encoders(search.store, "study-1")[0] == "study-1"
    # Final runs that are named stand for themselves, and no trial of the later search ranks them.
    assert _seed_of(search.store, "study-1-final") == 5
    delete_study(final.location, "study-1")
    assert runs_with_encoders(search.store, "study-1-final")[0] == "study-1-final"


def test_longer_final_runs_are_exported_by_their_name(tmp_path: Path) -> None:
    search = PlannedStudy(small_plan(tmp_path))
    search.write(scored())
    for place, name in enumerate(("study-1-final", "study-1-9-epochs-final")):
        record = make_final_record(name, search={"searched": "study-1"}, created=search.record.created)
        final = WrittenStudy(tmp_path, record)
        final.write(Run(0, 5 + place, final={"test.accuracy": 0.5}, phase="final"))
        final.location.write(encoder_path(name, 0, 5 + place), encoder_file(5 + place))
        seeds = {given: _seed_of(search.store, given) for given in ("study-1", name)}
        assert seeds == {"study-1": 5, name: 5 + place}


def test_final_runs_that_failed_do_not_hide_longer_ones_and_name_no_others(tmp_path: Path) -> None:
    search = PlannedStudy(small_plan(tmp_path))
    search.write(scored())
    for name, status in (("study-1-final", "failed"), ("study-1-9-epochs-final", "completed")):
        record = make_final_record(name, search={"searched": "study-1"}, created=search.record.created)
        WrittenStudy(tmp_path, record).write(
            Run(0, 5, status=status, final={"test.accuracy": 0.5}, phase="final")
        )
    assert runs_with_encoders(search.store, "study-1")[0] == "study-1-9-epochs-final"
    with pytest.raises(InputError, match="study-1-final has no encoder: none of its runs has completed"):
        runs_with_encoders(search.store, "study-1-final")


def _seed_of(store: ResultsStore, given: str) -> int:
    run = source_of_study(store, given).run
    assert run is not None
    return run.seed
