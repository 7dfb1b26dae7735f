"""Exported encoders on datasets: the scores of final runs again, chance without labels, and means."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from torch import nn
from torchvision.transforms.functional import rgb_to_grayscale
from typer.testing import CliRunner

from contrasweep.data import load_test
from contrasweep.models import Encoder, build_encoder, encoder_bytes, read_encoder
from contrasweep.models.encoders.multiview import build_multiview_encoder
from contrasweep.models.export import multiview_encoder_bytes
from contrasweep.tuning.cli import app
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.statistics import mean_interval
from contrasweep.tuning.transfer.encoders import of_channels, read_encoders
from contrasweep.tuning.transfer.evaluate import Transfer, evaluate
from contrasweep.tuning.transfer.fine_tune import fine_tuning_experiment
from contrasweep.tuning.transfer.measure import measure, with_probe
from contrasweep.tuning.transfer.plan import FINE_TUNED, FineTuning, TransferPlan
from contrasweep.tuning.transfer.sources import encoder_sources
from contrasweep.tuning.transfer.tasks import load_tasks
from tests.transfer.final_encoders import DATASET, FinalRun

GREY = "digits:images=200,test_images=100"


@pytest.fixture(scope="module")
def transfer(runs: list[FinalRun]) -> Transfer:
    return evaluate([run.file for run in runs], [DATASET, GREY], shots=(2, "all"), detail=True)


@pytest.fixture
def untrained(tmp_path: Path) -> Path:
    """An encoder file that says nothing of an experiment."""
    file = tmp_path / "plain.safetensors"
    file.write_bytes(
        encoder_bytes(build_encoder("small-conv", 1, 8), name="small-conv", channels=1, image_size=8)
    )
    return file


def test_scores_are_those_of_the_final_runs_bit_for_bit(transfer: Transfer, runs: list[FinalRun]) -> None:
    for run in runs:
        for trained, prefix in ((True, "test."), (False, "test.untrained_")):
            (own,) = [
                one
                for one in transfer.measurements
                if (one.seed, one.trained, one.dataset) == (run.seed, trained, DATASET)
                and (one.probe, one.shots) == ("logistic", None)
            ]
            assert own.scores == {name: run.scores[prefix + name] for name in own.scores}
            assert {"accuracy", "colour_mse"} == set(own.scores)


def test_probes_learn_from_the_images_that_those_of_the_run_learned_from(uncut: list[FinalRun]) -> None:
    dataset = "digits:imbalance=linear"
    assert uncut[0].scores["test.accuracy"] != uncut[1].scores["test.accuracy"]
    for run in uncut:
        found = evaluate(run.file, dataset, probes=["logistic"])
        scores = {one.trained: one.scores["accuracy"] for one in found.measurements}
        assert scores == {True: run.scores["test.accuracy"], False: run.scores["test.untrained_accuracy"]}
    with pytest.raises(InputError, match=r"probes.images on digits:imbalance=linear: encoders have training"):
        evaluate([run.file for run in uncut], dataset)


def test_the_control_of_an_encoder_that_started_from_a_file_is_that_file(
    continued: FinalRun, runs: list[FinalRun]
) -> None:
    found = evaluate(continued.file, DATASET, probes=["logistic"])
    control = next(one for one in found.measurements if not one.trained)
    assert control.scores["accuracy"] == continued.scores["test.untrained_accuracy"]
    assert control.scores["accuracy"] == runs[0].scores["test.accuracy"]
    assert found.notes == (f"Untrained means as loaded from {runs[0].file}.",)


def test_snapshots_of_a_run_are_no_further_seeds(
    runs: list[FinalRun], continued: FinalRun, tmp_path: Path
) -> None:
    """The file of a network with other weights and the first run's experiment is as a snapshot of it."""
    first, network = (read_encoder(run.file.read_bytes(), "") for run in (runs[0], continued))
    snapshot = encoder_bytes(network.encoder, experiment=first.experiment, **first.header)
    for name in ("epoch-00001.safetensors", "renamed.safetensors"):
        (tmp_path / name).write_bytes(snapshot)
        files = [str(run.file) for run in runs] + [str(tmp_path / name)]
        *seeds, other = [one.name for one in read_encoders(encoder_sources(files, "results"))]
        assert seeds == [f"supcon on {DATASET}"] * 2
        assert other not in seeds
    (tmp_path / "epoch-00002.safetensors").write_bytes(runs[0].file.read_bytes())
    files = [str(runs[0].file), str(tmp_path / "epoch-00002.safetensors")]
    assert [one.place for one in read_encoders(encoder_sources(files, "results"))] == files[:1], (
        "the last one"
    )
    (alone,) = read_encoders(encoder_sources([str(tmp_path / "epoch-00001.safetensors")], "results"))
    assert alone.name == f"supcon on {DATASET}, after epoch 1"


def test_test_scores_of_an_encoder_of_a_search_come_with_a_warning(
    runs: list[FinalRun], tmp_path: Path
) -> None:
    read = read_encoder(runs[0].file.read_bytes(), "")
    experiment = json.loads(read.experiment)
    experiment["validation"]["fraction"] = 0.2
    file = tmp_path / "searched.safetensors"
    file.write_bytes(encoder_bytes(read.encoder, experiment=json.dumps(experiment), **read.header))
    notes = evaluate([runs[0].file, file], [DATASET, GREY], probes=["knn"], shots=2).notes
    (warning,) = (note for note in notes if "as in a search" in note)
    assert "`contrasweep run` scores" in warning


def test_an_encoder_that_was_trained_on_test_images_comes_with_a_warning(tmp_path: Path) -> None:
    for label in "01":
        (tmp_path / "own" / label).mkdir(parents=True)
        for place, pixels in enumerate(np.random.default_rng(int(label)).integers(256, size=(20, 8, 8, 3))):
            Image.fromarray(pixels.astype("uint8")).save(tmp_path / "own" / label / f"{place}.png")

    def told(method: str, trained: str, scored: str) -> list[str]:
        file = tmp_path / "encoder.safetensors"
        experiment = resolve(method, trained, {"encoder.name": "small-conv"})
        header = {"name": "small-conv", "channels": 3, "image_size": 8}
        content = experiment.model_dump_json()
        file.write_bytes(encoder_bytes(build_encoder("small-conv", 3, 8), experiment=content, **header))
        return list(evaluate(file, scored, probes=["knn"]).notes)

    own = f"image-folder:path={tmp_path / 'own'},size=8"
    (warning,) = told("infonce", f"{own},labels=none", own)
    assert "trained on some of these test images" in warning
    for scored in (own, f"image-folder:size=8,path={tmp_path / 'own'}"):
        (warning,) = told("supcon", own, scored)
        assert "without the validation images" in warning
    assert not any("test images" in note for note in told("supcon", own, DATASET))


def test_permuted_labels_give_chance(runs: list[FinalRun]) -> None:
    plan = TransferPlan(("digits",))
    (task,) = load_tasks(plan, None, torch.device("cpu"))
    (encoder,) = read_encoders(encoder_sources([str(runs[0].file)], "results"))
    probed = task.data.probed
    order = torch.randperm(len(probed), generator=torch.Generator().manual_seed(0))
    shuffled = replace(probed, labels=probed.labels[order])
    fooled = replace(task, data=replace(task.data, probed=shuffled))
    told = [one.scores["accuracy"] for one in measure(encoder, task, plan, trained=True).measurements]
    chance = [one.scores["accuracy"] for one in measure(encoder, fooled, plan, trained=True).measurements]
    assert min(told) > 0.6
    assert max(chance) < 0.17, "0.1, and four standard errors of 359 images"


def test_few_images_are_drawn_and_all_are_not(transfer: Transfer, runs: list[FinalRun]) -> None:
    by_shots = {shots: [one for one in transfer.measurements if one.shots == shots] for shots in (2, None)}
    assert {one.draw for one in by_shots[2]} == {0, 1, 2, 3, 4}
    assert {one.draw for one in by_shots[None]} == {None}
    cell = next(one for one in transfer.cells if (one.probe, one.shots) == ("knn", 2))
    own = [one for one in by_shots[2] if (one.dataset, one.probe, one.trained) == (DATASET, "knn", True)]
    means = [sum(one.scores["accuracy"] for one in own if one.seed == run.seed) / 5 for run in runs]
    assert cell.trained["accuracy"].mean == pytest.approx(sum(means) / 2)
    assert (cell.over, cell.trained["accuracy"].n, cell.interval) == ("seeds", 2, None), "two seeds: too few"


def test_few_images_keep_their_labels(transfer: Transfer) -> None:
    few = [one for one in transfer.cells if (one.dataset, one.shots) == (GREY, 2)]
    assert min(one.untrained["accuracy"].mean for one in few) > 0.3, "chance is 0.1"


def test_the_order_of_a_dataset_s_options_draws_no_other_images(
    runs: list[FinalRun], transfer: Transfer
) -> None:
    spelled = "digits:test_images=100,images=200"
    again = evaluate(runs[0].file, spelled, probes=["knn"], shots=2).measurements
    assert [one.scores for one in again] == [
        one.scores
        for one in transfer.measurements
        if (one.dataset, one.probe, one.shots, one.seed) == (GREY, "knn", 2, runs[0].seed)
    ]


def test_another_probe_has_its_own_settings() -> None:
    neighbours = {"probes.classifier": "knn", "probes.neighbours": 7, "probes.temperature": 0.1}
    experiment = resolve("supcon", "digits", neighbours)
    assert with_probe(experiment, "knn") is experiment
    other = with_probe(experiment, "logistic").probes
    assert (other.classifier, other.neighbours, other.temperature) == ("logistic", None, None)


def test_the_interval_of_one_encoder_is_over_the_draws(runs: list[FinalRun], transfer: Transfer) -> None:
    alone = evaluate(runs[0].file, DATASET, probes=["knn"], shots=(2, None))
    few, every = alone.cells
    assert (few.over, few.trained["accuracy"].n) == ("draws", 5)
    assert few.interval == mean_interval(few.trained["accuracy"])
    assert (every.over, every.interval) == (None, None)
    own = [
        one.scores
        for one in transfer.measurements
        if (one.probe, one.dataset, one.seed) == ("knn", DATASET, runs[0].seed)
    ]
    assert [one.scores for one in alone.measurements] == own, "other encoders and probes change nothing"


def test_other_images_are_converted_and_it_is_said(transfer: Transfer) -> None:
    assert transfer.notes == (f"{GREY}: grey repeated in 3 channels",)


def test_the_detail_counts_every_test_image(transfer: Transfer) -> None:
    for cell in transfer.cells:
        images = 100 * 2 * (5 if cell.shots else 1)
        assert int(cell.confusion.sum()) == images
        of_classes = load_test(cell.dataset).labels.bincount(minlength=10)
        assert cell.confusion.sum(dim=1).tolist() == (images // 100 * of_classes).tolist(), "a row for each"
        right = int(cell.confusion.diagonal().sum()) / images
        assert right == pytest.approx(cell.trained["accuracy"].mean)
    content = transfer.content()
    assert content["classes"][GREY] == [str(digit) for digit in range(10)]
    scores = content["clusters"][0]["trained"]
    assert set(scores) == {"cluster_accuracy", "cluster_nmi"}
    assert all(0 < one["mean"] < 1 and one["n"] == 2 for one in scores.values())


def test_grey_is_the_luma_as_in_other_conversions() -> None:
    """That of ITU-R 601, as Pillow and torchvision have it; not the mean of the channels."""
    images = torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    grey = of_channels(Encoder(nn.Flatten(), 16), 1, 3)(images)
    torch.testing.assert_close(grey, rgb_to_grayscale(images).flatten(1))


def test_a_draw_has_a_seed_of_its_own_in_fine_tuning(runs: list[FinalRun]) -> None:
    """That of all images has the seed of the encoder's run."""
    (encoder,) = read_encoders(encoder_sources([str(runs[1].file)], ""))
    (task,) = load_tasks(TransferPlan((GREY,)), None, torch.device("cpu"))
    seeds = [fine_tuning_experiment(encoder, task, FineTuning(), draw).seed for draw in (None, 0, 7)]
    assert seeds == [runs[1].seed, 0, 7]


def test_a_colour_image_is_turned_to_grey_and_resized(untrained: Path) -> None:
    (note,) = evaluate(untrained, DATASET, probes=["knn"], shots=2).notes
    assert note == f"{DATASET}: colours turned to grey"
    wide = untrained.with_name("wide.safetensors")
    wide.write_bytes(encoder_bytes(build_encoder("lenet5", 1, 32), name="lenet5", channels=1, image_size=32))
    (note,) = evaluate(wide, GREY, probes=["knn"], shots=2).notes
    assert note == f"{GREY}: resized from 8 x 8 to 32 x 32 pixels (bilinear)"


def test_fine_tuning_begins_with_the_encoder_and_is_repeatable(runs: list[FinalRun]) -> None:
    file, tuning = runs[0].file, FineTuning(epochs=3, lr=3e-3)
    options: dict[str, Any] = {"probes": ["knn"], "fine_tuning": tuning}
    first, again = (evaluate(file, GREY, **options) for _ in range(2))
    tuned = [one for one in first.measurements if one.probe == FINE_TUNED]
    assert [one.scores for one in first.measurements] == [one.scores for one in again.measurements]
    assert [one.trained for one in tuned] == [True, False]
    assert tuned[0].scores != tuned[1].scores
    assert "fine-tuned for 3 epochs by adam at 0.003, in batches of 20" in first.notes[-1]
    still = evaluate(file, GREY, probes=["knn"], fine_tuning=FineTuning(epochs=3, lr=1e-9))
    moved = next(one for one in still.measurements if one.probe == FINE_TUNED)
    assert moved.scores["accuracy"] < tuned[0].scores["accuracy"], "at such a rate nothing is learnt"


def test_what_is_no_encoder_of_images_is_refused(tmp_path: Path, runs: list[FinalRun]) -> None:
    other = tmp_path / "other.safetensors"
    other.write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"other\.safetensors is not an encoder of contrasweep"):
        evaluate(other, "digits")
    encoder = build_multiview_encoder("herocon-mlp", [(3,), (5,)])
    other.write_bytes(multiview_encoder_bytes(encoder, name="herocon-mlp", views=[(3,), (5,)]))
    with pytest.raises(InputError, match="several views of an object; allowed: an encoder of single images"):
        evaluate(other, "digits")
    with pytest.raises(InputError, match="is given twice"):
        evaluate([runs[0].file] * 2, "digits")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--data", "digit"], "unknown dataset 'digit'. Did you mean 'digits'?"),
        (["--data", "scene"], "dataset 'scene' has objects of several views"),
        (["--data", "digits,digits"], "allowed: each dataset once"),
        (["--data", "digits", "--probe", "logistc"], "unknown probe 'logistc'. Did you mean 'logistic'?"),
        (["--data", "digits", "--shots", "0"], "--shots must be at least 1, given 0"),
        (["--data", "digits", "--shots", "few"], "and 'all', given 'few'"),
        (["--data", "digits", "--shots", "144"], "--shots 144: dataset digits has 1,438 training images"),
        (["--data", "digits", "--shots", "140"], "class 8 of digits has 139 training images"),
        (
            ["--data", GREY, "--shots", "21"],
            f"--shots 21: class 0 of {GREY} has 20",
        ),
        (["--data", "digits", "--draws", "2"], "--draws must be at least 5, given 2"),
        (["--data", "digits", "--lr", "0.1"], "--lr given; allowed: with --fine-tune"),
        (["--data", "digits", "--fine-tune", "--lr", "-1"], "--lr must be a number above 0, given -1"),
        (["--data", "digits", "-o", "scores.txt"], "give a file that ends in .csv, .parquet"),
        (["--data", "image-folder:path=nowhere,size=8"], "path=nowhere is looked for under the data root"),
    ],
)
def test_wrong_input_is_refused_before_any_work(
    options: Sequence[str], message: str, runs: list[FinalRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    def worked(*_: Any, **__: Any) -> None:
        raise AssertionError("an image was encoded")

    monkeypatch.setattr("contrasweep.tuning.transfer.evaluate.measure", worked)
    result = CliRunner().invoke(app, ["eval", str(runs[0].file), *options])
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.stderr.split())


def test_the_command_prints_a_row_for_each_probe_and_writes_each_score(
    runs: list[FinalRun], tmp_path: Path
) -> None:
    words = ["eval", *(str(run.file) for run in runs), "--data", f"{DATASET},{GREY}", "--probe", "knn"]
    result = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "scores.parquet")])
    assert result.exit_code == 0, result.output
    header, *rows = [line.split("\t") for line in result.stdout.splitlines() if "\t" in line]
    row, on_grey = (dict(zip(header, one, strict=True)) for one in rows)
    assert (row["dataset"], row["encoder"], row["probe"]) == (DATASET, f"supcon on {DATASET}", "knn")
    assert (row["shots"], row["score"], row["n"]) == ("all", "accuracy", "2 seeds")
    assert on_grey["dataset"] == GREY
    assert 0 < float(row["trained"].split()[0]) < 1, "a fraction, as everywhere"
    assert "Note: " not in result.stdout, "other programs read it"
    written = pq.read_table(tmp_path / "scores.parquet").to_pylist()
    assert len(written) == 2 * 2 * 2
    assert written[0]["test.accuracy"] == pytest.approx(float(row["trained"].split()[0]), abs=0.2)
    content = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert [one["seed"] for one in content["encoders"]] == [1, 2]
    assert [one["dataset"] for one in content["rows"]] == [DATASET, GREY]
    assert content["rows"][0]["untrained"]["accuracy"]["n"] == 2
