"""What a run consists of is said before it starts; a batch larger than the data is refused."""

from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from contrasweep.search_spaces import Space
from contrasweep.tuning.cli import app
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.objectives.prepared import spec_for
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.planning.setup import (
    few_images_in_words,
    few_steps_in_words,
    late_rung_in_words,
    scored_images,
    searched_views_in_words,
    setup_in_words,
    unreached_in_words,
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Ten grey training images of 2 x 2 pixels in each of two classes, and a test image of each."""
    for split, count in (("train", 10), ("test", 1)):
        for name in ("a", "b"):
            for number in range(count):
                file = tmp_path / split / name / f"{number}.png"
                file.parent.mkdir(parents=True, exist_ok=True)
                Image.new("L", (2, 2)).save(file)
    return tmp_path


def test_a_line_says_network_images_views_batches_epochs_and_device() -> None:
    experiment = resolve("infonce", "digits", {"views.hue": 0.1, "views.padding": 1, "epochs": 1})
    said = setup_in_words(experiment, spec_for(experiment), "cuda", ["views.hue", "batch_size", "lam"])
    assert said == (
        "small-conv on 1 x 8 x 8 images; views: crops of 40 to 100 %, shifts of up to 1 pixel, "
        "colour jitter (hue searched); "
        "batches of 128 (searched) from 1,294 images; 144 held out for validation; 1 epoch; on cuda"
    )
    final = setup_in_words(experiment.on_all_training_data(), spec_for(experiment), "cpu")
    assert "from 1,438 images; 1 epoch; on cpu" in final


def test_objects_with_views_of_their_own_are_said_to_have_them() -> None:
    experiment = resolve("herocon", "two-view-digits")
    said = setup_in_words(experiment, spec_for(experiment), "cpu")
    assert "; views of the data's own; batches of 512; " in said


def test_few_validation_images_are_warned_of() -> None:
    experiment = resolve("infonce", "digits", {"validation.fraction": 48 / 1438})
    assert scored_images(experiment, 1, None) == 48
    warned = few_images_in_words(experiment, spec_for(experiment))
    assert warned is not None
    assert "48 images: one of them changes the accuracy by 0.021" in warned
    halved = experiment.with_values({"validation.fraction": 97 / 1438, "validation.halves": True})
    assert scored_images(halved, 1, None) == 49
    enough = experiment.with_values({"validation.fraction": 0.1})
    assert few_images_in_words(enough, spec_for(enough)) is None
    assert few_images_in_words(experiment.on_all_training_data(), spec_for(experiment)) is None


def test_few_steps_are_warned_of() -> None:
    experiment = resolve("infonce", "digits", {"batch_size": 600})
    warned = few_steps_in_words(experiment, spec_for(experiment))
    assert warned is not None
    assert warned.startswith("a trial makes 20 steps in all: 10 epochs of 2 batches each.")
    assert "--set batch_size=N, or more --epochs" in warned
    longer = experiment.with_values({"epochs": 15})
    assert few_steps_in_words(longer, spec_for(longer)) is None
    transductive = resolve("herocon", "two-view-digits", {"epochs": 1})
    assert few_steps_in_words(transductive, spec_for(transductive)) is None


def test_a_batch_has_no_more_images_than_there_are() -> None:
    experiment = resolve("infonce", "digits", {"batch_size": 5000})
    assert "; batches of 1,294 from 1,294 images; " in setup_in_words(experiment, spec_for(experiment), "cpu")
    warned = few_steps_in_words(experiment, spec_for(experiment))
    assert warned is not None
    assert warned.startswith("a trial makes 10 steps in all: 10 epochs of 1 batch each.")


def test_what_a_short_run_does_not_reach_is_warned_of() -> None:
    given = {"epochs": 2, "probes.at_epochs": (1, 50), "schedule.warmup_epochs": 20}
    late, warmup = unreached_in_words(resolve("infonce", "digits", given))
    assert late == "probes.at_epochs has 50, and the run ends after 2 epochs."
    assert warmup.startswith("the learning rate never reaches optimizer.lr: it rises for 20 epochs")
    assert len(unreached_in_words(resolve("infonce", "digits", {**given, "schedule.name": "constant"}))) == 2
    # A schedule of a paper, whose ramp is longer than the run on purpose.
    ramp = {**given, "schedule.name": "cosine-min-ramp", "probes.at_epochs": (2,)}
    assert unreached_in_words(resolve("infonce", "digits", ramp)) == []


def test_scores_of_views_are_warned_of_where_the_search_varies_the_views() -> None:
    plan = plan_sweep("infonce", "digits")
    warned = searched_views_in_words(["val.lidar", "val.rankme", "val.lidar"], plan.space)
    assert warned is not None
    assert "varies views.min_crop and views.flip, which change val.lidar by themselves" in warned
    assert warned.endswith("--set views.min_crop=0.4 --set views.flip=0.0")
    assert searched_views_in_words(["val.rankme", "val.accuracy"], plan.space) is None
    fixed = plan_sweep("infonce", "digits", values={"views.min_crop": 0.4, "views.flip": 0.0})
    assert searched_views_in_words(["val.alignment"], fixed.space) is None


def test_a_batch_of_more_images_than_a_trial_trains_on_is_refused() -> None:
    with pytest.raises(InputError, match="batch_size 1,295 is above the 1,294 images of digits"):
        plan_sweep("infonce", "digits", values={"batch_size": 1295})
    assert plan_sweep("infonce", "digits", values={"batch_size": 1294}).experiment.batch_size == 1294
    space = Space.parse({"batch_size": {"choice": [64, 2048], "default": 64}}, "mine.yaml")
    said = r"batch_size 2,048, which mine\.yaml allows, is above .*, or smaller values in mine\.yaml"
    with pytest.raises(InputError, match=said):
        plan_sweep("infonce", "digits", space=space)
    # Its batches are of unlabelled objects, of which there are more than labelled ones.
    assert plan_sweep("herocon", "two-view-digits").experiment.batch_size == 512


@pytest.mark.parametrize("ends", [[32, 64], [32, 65], [1.5, 2.5]])
def test_a_range_of_fractions_for_a_whole_number_is_refused(ends: list[float]) -> None:
    """Both ends and the default may be whole: only the trials between them would fail."""
    space = Space.parse({"batch_size": {"uniform": ends, "default": ends[0]}}, "mine.yaml")
    with pytest.raises(InputError, match=r"batch_size.*integer"):
        plan_sweep("infonce", "digits", space=space)
    whole = Space.parse({"batch_size": {"int": [32, 64], "default": 32}}, "mine.yaml")
    assert plan_sweep("infonce", "digits", space=whole).experiment.batch_size == 32


@pytest.mark.parametrize(
    ("size", "values", "encoder"),
    [
        (32, {}, "resnet18-cifar"),
        (65, {}, "resnet18"),
        (96, {"views.size": 64}, "resnet18-cifar"),
        (32, {"encoder.name": "resnet18"}, "resnet18"),
    ],
)
def test_own_images_that_are_small_get_the_stem_for_small_ones(
    size: int, values: dict[str, int | str], encoder: str, tree: Path
) -> None:
    experiment = resolve("infonce", f"image-folder:path={tree},size={size}", values)
    assert experiment.encoder.name == encoder


def test_a_benchmark_keeps_the_network_that_it_is_published_with() -> None:
    assert resolve("infonce", "corrupted-cifar10").encoder.name == "resnet18"


@pytest.mark.parametrize(
    ("epochs", "warmup", "scheduler", "is_told"),
    [
        (3, 50.0, "asha", True),
        (2, 1.0, "asha", True),
        (3, 1.0, "asha", False),
        (3, 50.0, "none", False),
        (1, 1.0, "asha", False),
        (2, 1.0, "curves", True),
        (3, 1.0, "curves", False),
        (2, 1.0, "asha+curves", True),
    ],
)
def test_early_stopping_that_stops_nothing_is_told(
    epochs: int, warmup: float, scheduler: str, is_told: bool
) -> None:
    values = {"schedule.warmup_epochs": warmup}
    plan = plan_sweep("infonce", "digits", epochs=epochs, scheduler=scheduler, values=values)
    told = late_rung_in_words(plan.rungs, plan.search.scheduler, plan.experiment)
    assert (told is not None) == is_told
    assert told is None or told.startswith(f"no trial is stopped early: a trial has {epochs} epochs")
    # The model of curves has no grace period.
    assert told is None or ("--grace" in told) == (scheduler != "curves")
    assert [told] * is_told == [one for one in plan.warnings if one.startswith("no trial is stopped")]


@pytest.mark.parametrize(("epochs", "fewer"), [("3", True), ("1", False)])
def test_a_dry_run_promises_fewer_epochs_only_if_trials_can_be_stopped(
    tmp_path: Path, epochs: str, fewer: bool
) -> None:
    asked = ["sweep", "infonce", "--data", "digits", "--epochs", epochs, "--results", str(tmp_path)]
    told = CliRunner().invoke(app, [*asked, "--dry-run"]).output
    assert "in all" in told
    assert ("stops weak trials" in " ".join(told.split())) == fewer
