"""A dataset of a plug-in that returns something wrong: named on every path, and no obstacle to others."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner
from wrong_returns import IS_WRONG, told

from contrasweep.data import (
    DATASETS,
    DatasetMissing,
    dataset_spec,
    inspect_dataset,
    load_test,
    load_training,
    load_uncut,
)
from contrasweep.plugins import PluginError
from contrasweep.tuning.cli import app

Bring = Callable[..., None]

IMAGES = """
from dataclasses import replace
import torch
from contrasweep.data import DatasetFamily, DatasetMissing, DatasetOption, DatasetSpec, LabelledImages

SIZES = {{"train": 24, "test": 8}}

def describe(root, options):
    facts = dict(
        name="mine", summary="", classes=2, channels=1, image_size=8, view_size=8, train_size=24, test_size=8,
        licence="", source="", folder=None,
    )
    {describe}
    return DatasetSpec(**facts)

def check(root, options):
    {check}

def read(root, split, options):
    rows = SIZES[split]
    images = torch.zeros(rows, 1, 8, 8, dtype=torch.uint8)
    labels = torch.arange(rows) % 2
    {read}
    return LabelledImages(images, labels)

def zeros(*shape):
    return torch.zeros(shape, dtype=torch.long)

def recoloured(root, options, rows, seed):
    return read(root, "train", options)

def uncut(root, options):
    return read(root, "train", options), torch.arange(30)

ITEM = DatasetFamily("mine", "", describe, check, read{more})
"""


@pytest.fixture
def images(bring: Bring) -> Bring:
    """Installs a dataset of images, some lines of which are wrong."""

    def install(describe: str = "", read: str = "", check: str = "pass", more: str = "") -> None:
        code = IMAGES.format(describe=describe, read=read, check=check, more=more)
        bring(code, {"contrasweep.datasets": {"mine": "my_plugin:ITEM"}})

    return install


def test_a_good_dataset_passes_on_every_path(images: Bring) -> None:
    images()
    assert dataset_spec("mine:images=10").train_size == len(load_training("mine:images=10").train) == 10
    assert len(load_test("mine")) == 8
    assert [split.class_counts for split in inspect_dataset("mine").splits] == [(12, 12), (4, 4)]


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ("return None", "its describe must return DatasetSpec, returned None"),
        ("return facts", "its describe must return DatasetSpec, returned dict"),
        ("facts['train_size'] = '24'", "states train_size='24'; allowed: int of 1 or more"),
        ("facts['train_size'] = 24.0", "states train_size=24.0; allowed: int of 1 or more"),
        ("facts['test_size'] = 0", "states test_size=0; allowed: int of 1 or more"),
        ("facts['classes'] = True", "states classes=True; allowed: int of 0 or more"),
        ("facts['classes'] = 0", "states classes=0; allowed: 1 or more, as there are labels"),
        ("facts['bias_classes'] = 0", "states bias_classes=0; allowed: int | None of 1 or more"),
        ("facts['class_names'] = (1, 2)", "states class_names=(1, 2); allowed: tuple[str, ...]"),
        ("facts['class_names'] = ('a',)", "states 1 class_names; allowed: 2, one for each of its classes"),
        ("facts['bias_names'] = ('a',)", "states 1 bias_names; allowed: 0, one for each of its bias labels"),
        ("facts['unlabelled_size'] = 25", "states unlabelled_size=25; allowed: at most 24, its train_size"),
        ("facts['recolourable'] = True", "states recolourable=True; allowed: False, as it has no function"),
        ("facts['cut'] = True", "states cut=True; allowed: False, as it has no function uncut"),
    ],
)
def test_wrong_facts_are_refused_on_every_path(images: Bring, facts: str, message: str) -> None:
    images(describe=facts)
    for use in (dataset_spec, load_training, load_test, inspect_dataset):
        for name in ("mine", "mine:images=10,test_images=4"):
            assert message in told(lambda use=use, name=name: use(name))  # type: ignore[misc]


WRONG_IMAGES = [
    ("return None", "its read of the SPLIT split must return LabelledImages, returned None"),
    ("return images, labels", "its read of the SPLIT split must return LabelledImages, returned tuple"),
    ("labels = labels + 1", "its SPLIT split has labels from 1 to 2; allowed: 0 to 1, as it has classes=2"),
    ("labels = labels - 2", "its SPLIT split has labels from -2 to -1; allowed: 0 to 1"),
    ("labels = labels.where(labels == 1, -1)", "images without a label; allowed: 0, "),
    ("labels = torch.stack([labels, 1 - labels], 1)", ", 2); allowed: (ROWS,), as it has multi_label=False"),
    ("images, labels = images[:5], labels[:5]", "SPLIT split has 5 images; allowed: ROWS, its SPLIT_size"),
    ("images = images.expand(-1, 3, -1, -1)", "has images of 3 x 8 x 8; allowed: 1 x 8 x 8, its channels x"),
    ("images = images.repeat(1, 1, 2, 2)", "has images of 1 x 16 x 16; allowed: 1 x 8 x 8, its channels"),
    ("images = images.float()", "images must be torch.uint8 (N, C, H, W), got torch.float32 (ROWS, 1, 8, 8)"),
    ("images = images.numpy()", "images must be a tensor, torch.uint8 (N, C, H, W), got ndarray"),
    ("labels = labels.tolist()", "labels must be a tensor, torch.int64 (N,) or (N, c), got list"),
    ("labels = labels[1:]", "one row for each image is needed, got ROWS images, "),
]


@pytest.mark.parametrize(("lines", "message"), WRONG_IMAGES)
@pytest.mark.parametrize("split", ["train", "test"])
def test_wrong_images_are_refused_on_every_path(images: Bring, split: str, lines: str, message: str) -> None:
    images(read=f"if split == {split!r}:\n        {lines}\n        return LabelledImages(images, labels)")
    said = message.replace("SPLIT", split).replace("ROWS", "24" if split == "train" else "8")
    load, other = (load_training, load_test) if split == "train" else (load_test, load_training)
    assert said in told(lambda: load("mine"))
    assert said in told(lambda: load("mine:images=4,test_images=4"))
    assert said in told(lambda: inspect_dataset("mine"))
    # The other split is right, and is not blamed.
    assert other("mine")


def test_tensors_that_are_no_images_are_told_with_the_line(images: Bring) -> None:
    images(read="images = images.float()")
    assert told(lambda: load_training("mine")).endswith(", at my_plugin.py:24 in read")


@pytest.mark.parametrize(
    ("facts", "lines", "message"),
    [
        ("facts['bias_classes'] = 2", "", "has no bias; allowed: int64 (N,), as it has bias_classes=2"),
        (
            "facts['bias_classes'] = 2",
            "return LabelledImages(images, labels, bias=labels + 1)",
            "has a bias from 1 to 2; allowed: 0 to 1, as it has bias_classes=2",
        ),
        ("facts['condition_dim'] = 3", "", "has 0 columns of the condition; allowed: 3, its condition_dim"),
        (
            "facts['condition_dim'] = 3",
            "return LabelledImages(images, labels, condition=torch.zeros(rows, 2))",
            "has 2 columns of the condition; allowed: 3, its condition_dim",
        ),
        ("facts['unlabelled_size'] = 9", "", "has 0 images without a label; allowed: 9, its unlabelled_size"),
    ],
)
def test_images_without_what_the_facts_state_are_refused(
    images: Bring, facts: str, lines: str, message: str
) -> None:
    images(describe=facts, read=lines)
    assert told(lambda: load_training("mine")) == f"its train split {message}"


def test_images_have_one_label_each(images: Bring) -> None:
    images(describe="facts['multi_label'] = True", read="labels = zeros(rows, 2)")
    assert "multi_label=True; allowed: False" in told(lambda: load_training("mine"))


def test_the_test_split_alone_needs_groupings(images: Bring) -> None:
    images(describe="facts['groupings'] = 3")
    assert load_training("mine")
    assert told(lambda: load_test("mine")).endswith("has 0 columns of groupings; allowed: 3, its groupings")


def test_what_the_facts_leave_out_may_be_there(images: Bring) -> None:
    images(read="return LabelledImages(images, labels, torch.zeros(rows, 5), labels + 7, zeros(rows, 2))")
    assert load_training("mine").train.condition is not None
    assert inspect_dataset("mine").spec.bias_classes is None


def test_test_images_may_lack_a_condition(images: Bring) -> None:
    images(
        describe="facts['condition_dim'] = 3",
        read="if split == 'train': return LabelledImages(images, labels, torch.zeros(rows, 3))",
    )
    assert [split.images for split in inspect_dataset("mine").splits] == [24, 8]


def test_images_without_labels_pass_where_the_facts_state_them(images: Bring) -> None:
    images(describe="facts |= dict(classes=0, unlabelled_size=24)", read="labels = labels * 0 - 1")
    assert [split.unlabelled for split in inspect_dataset("mine").splits] == [24, 8]


def test_fewer_images_pass_where_damaged_ones_are_left_out(images: Bring) -> None:
    option = "DatasetOption('', str, 'stop', ('stop', 'skip'))"
    images(read="images, labels = images[1:], labels[1:]", more=f", options={{'corrupt': {option}}}")
    assert len(load_training("mine:corrupt=skip").train) == 23
    assert "has 23 images" in told(lambda: load_training("mine"))


def test_images_made_again_are_checked(images: Bring) -> None:
    facts = "facts |= dict(bias_classes=2, recolourable=True)"
    read = "return LabelledImages(images, labels, bias=labels)"
    images(describe=facts, read=read, more=", recoloured=recoloured")
    said = told(lambda: load_training("mine", validation_fraction=0.25, split="recoloured"))
    assert said == "its train split has 24 images; allowed: 6, its rows"


def test_images_before_a_cut_are_checked(images: Bring) -> None:
    images(describe="facts['cut'] = True", more=", uncut=uncut")
    assert told(lambda: load_uncut("mine")) == "its uncut gives 30 rows; allowed: 24, its train_size"
    images(describe="facts['cut'] = True", more=", uncut=lambda root, options: read(root, 'train', options)")
    assert "(LabelledImages, Tensor), returned (LabelledImages)" in told(lambda: load_uncut("mine"))
    outside = "torch.arange(24) + 1"
    images(describe="facts['cut'] = True", more=f", uncut=lambda *given: (uncut(*given)[0], {outside})")
    assert told(lambda: load_uncut("mine")) == "its uncut returned rows from 1 to 24; allowed: 0 to 23"


def test_a_check_that_answers_in_place_of_raising_is_refused(images: Bring) -> None:
    images(check="return False")
    assert "must raise DatasetMissing" in told(lambda: load_training("mine"))


def test_another_error_of_a_value_is_no_mistake_of_the_user(images: Bring) -> None:
    images(read="int('seven')")
    done = CliRunner().invoke(app, ["datasets", "check", "mine"])
    assert done.exit_code == 1
    assert (
        "Error: error in the plug-in my-plugin, my_plugin.py:23 in read: RuntimeError: dataset 'mine' cannot"
        in (done.stderr)
    )


def test_files_that_are_missing_stay_so(images: Bring) -> None:
    images(read="raise DatasetMissing('get them')")
    with pytest.raises(DatasetMissing, match=r"^get them$"):
        load_training("mine")


@pytest.mark.parametrize("command", ["check", "train"])
def test_a_command_says_it_in_one_line(images: Bring, tmp_path: Path, command: str) -> None:
    images(read="labels = labels + 1")
    file = tmp_path / "e.yaml"
    file.write_text(
        "{method: supcon, dataset: mine, batch_size: 8, encoder: {name: small-conv}, views: {size: 8}}"
    )
    done = CliRunner().invoke(
        app, ["datasets", "check", "mine"] if command == "check" else ["train", str(file)]
    )
    assert done.exit_code == 1, done.output
    assert f"Error: {IS_WRONG}its train split has labels from 1 to 2; allowed: 0 to 1" in done.stderr
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"describe": "return None"}, IS_WRONG + "its describe must return DatasetSpec, returned None"),
        ({"describe": "raise KeyError('x')"}, "my-plugin, my_plugin.py:13 in describe: KeyError: 'x'"),
        ({"describe": "raise ValueError('x')"}, "my-plugin, my_plugin.py:13 in describe: ValueError: x"),
        ({"check": "raise OSError('x')"}, "my-plugin, my_plugin.py:17 in check: OSError: x"),
    ],
)
def test_the_others_are_listed_beside_one_that_fails(
    images: Bring, given: dict[str, str], reason: str
) -> None:
    images(**given)
    done = CliRunner().invoke(app, ["datasets", "--json"])
    assert done.exit_code == 0, done.output
    rows = {row["dataset"]: row for row in json.loads(done.stdout)}
    assert len(rows) == len(DATASETS)
    assert rows["mine"]["cannot be used"].endswith(reason)
    assert rows["mine"]["there"] is None
    assert rows["mine"]["train"] == (24 if "check" in given else None)
    assert rows["digits"]["there"] == "yes"
    assert rows["digits"]["cannot be used"] is None
    assert reason in CliRunner().invoke(app, ["datasets"]).stdout


def test_facts_in_files_that_are_missing_are_no_fault(images: Bring) -> None:
    images(describe="raise DatasetMissing('get them')")
    rows = json.loads(CliRunner().invoke(app, ["datasets", "--json"]).stdout)
    assert (rows[-1]["there"], rows[-1]["cannot be used"]) == ("no", None)


def test_our_own_fault_ends_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str, root: Path | None) -> None:
        raise KeyError(name)

    monkeypatch.setattr("contrasweep.data.check_available", fail, raising=False)
    assert CliRunner().invoke(app, ["datasets"]).exit_code == 70


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (", checksums=None", "its checksums must be a function, given None"),
        (", uncut=3", "its uncut must be a function, given int"),
        (", options=['size']", "its options must be a mapping of name to DatasetOption, given ['size']"),
        (
            ", options={'size': 3}",
            "its options must be a mapping of name to DatasetOption, given {'size': 3}",
        ),
    ],
)
def test_a_family_with_a_wrong_part_is_left_out(images: Bring, more: str, reason: str) -> None:
    images(more=more)
    with pytest.raises(PluginError) as refused:
        dataset_spec("mine")
    assert reason in str(refused.value)
    assert "digits" in DATASETS
