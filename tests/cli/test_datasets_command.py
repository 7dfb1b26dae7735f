"""`contrasweep datasets` and `datasets check`: what they print, and their exit codes."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import Result

from contrasweep.data import DATASETS, TransductiveSpec, dataset_spec

Run = Callable[..., Result]
TREE = "image-folder:path=tree,size=4"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    file = io.BytesIO()
    Image.fromarray(np.full((6, 4, 3), 90, dtype=np.uint8)).save(file, "PNG")
    for place in ("train/ant", "train/bee", "test/bee"):
        folder = tmp_path / "tree" / place
        folder.mkdir(parents=True)
        (folder / "0.png").write_bytes(file.getvalue())
    return tmp_path


def test_every_family_is_listed_with_its_options(run: Run) -> None:
    rows = {row["dataset"]: row for row in json.loads(run("datasets", "--json").stdout)}
    assert len(rows) == len(DATASETS)
    assert rows["digits"]["there"] == "yes"
    assert rows["cifar10"]["there"] == "no"
    assert rows["stl10"]["train"] == 105_000
    assert rows["hub-parquet:path=..."]["there"] is None
    options = rows["image-folder:path=...,size=..."]["options"]
    assert set(options) == {
        "path",
        "size",
        "labels",
        "colour",
        "corrupt",
        "condition",
        "bias",
        "images",
        "test_images",
    }
    said = run("datasets")
    assert said.exit_code == 0
    assert "hub-parquet:path=..." in said.stdout
    assert said.stderr.startswith("Looking for the files of the datasets ...\n")


def test_a_program_gets_each_fact_in_a_column_of_its_own(run: Run) -> None:
    head, *lines = (line.split("\t") for line in run("datasets").stdout.splitlines())
    names = ["dataset", "train", "test", "there", "what it is", "condition", "licence", "options"]
    assert head == [*names, "cannot be used"]
    assert {len(line) for line in lines} == {len(head)}
    rows = {line[0]: dict(zip(head, line, strict=True)) for line in lines}
    known = {row["dataset"]: row for row in json.loads(run("datasets", "--json").stdout)}
    for name, row in rows.items():
        assert row["licence"] == (known[name]["licence"] or "-")
        assert row["condition"] == (known[name]["condition"] or "-")
        assert row["options"] == (", ".join(known[name]["options"]) or "-")


@pytest.mark.parametrize("before", [True, False])
def test_check_says_what_the_files_hold(run: Run, tree: Path, before: bool) -> None:
    root = ("--data-root", tree, "--json")
    arguments = (*root, "check", TREE) if before else ("check", TREE, *root)
    done = run("datasets", *arguments)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["dataset"], found["classes"]) == (TREE, 2)
    train = found["splits"]["train"]
    assert (train["images"], train["shape"], train["decoded"]) == (2, [3, 4, 4], 1)
    assert train["mean_level"] == 90
    assert train["class_counts"] == {"ant": 1, "bee": 1}
    assert found["splits"]["test"]["class_counts"] == {"ant": 0, "bee": 1}


def test_check_prints_tables_for_people(run: Run, tree: Path) -> None:
    done = run("datasets", "check", TREE, "--data-root", tree, "--all")
    assert done.stderr.startswith(f"Counting the images of {TREE}, and decoding every image ...\n")
    output = done.output
    for word in ("3 x 4 x 4", "Images of each class", "bee", "No checksums are published"):
        assert word in output


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cifar10", "cifar-10-batches-py does not exist. Get it from https://"),
        ("cifar11", "unknown dataset 'cifar11'. Did you mean 'cifar10'?"),
        ("xrmb", "dataset 'xrmb' not found"),
        ("celeba", "celeba holds list_attr_celeba.txt"),
        ("stl10:split=trian", "Did you mean 'train'?"),
        ("hub-parquet", "dataset hub-parquet needs path: hub-parquet:path=..."),
        ("hub-parquet:path=none", "does not exist. Give path= an absolute path"),
    ],
)
def test_what_cannot_be_checked_exits_with_2(run: Run, name: str, message: str) -> None:
    done = run("datasets", "check", name)
    assert done.exit_code == 2
    assert message in done.output


def test_check_of_folds_tells_what_each_of_them_holds(run: Run) -> None:
    done = run("datasets", "check", "two-view-digits")
    assert (done.exit_code, done.stderr) == (0, "two-view-digits\n")
    assert [line.split("\t") for line in done.stdout.splitlines()] == [
        ["folds", "labels", "labelled", "unlabelled", "views"],
        ["10", "10", "100", "1697", "1 x 8 x 8, 1 x 8 x 8"],
    ]
    found = json.loads(run("datasets", "check", "two-view-digits", "--json").stdout)
    spec = dataset_spec("two-view-digits")
    assert isinstance(spec, TransductiveSpec)
    assert (found["folds"], found["labels"]) == (spec.folds, spec.classes)
    assert (found["labelled"], found["unlabelled"]) == (list(spec.labelled), list(spec.unlabelled))
    refused = run("datasets", "check", "two-view-digits", "--all")
    assert refused.exit_code == 2
    assert "--all goes with labelled images" in refused.output


def test_a_damaged_image_exits_with_2_and_is_named(run: Run, tree: Path) -> None:
    (tree / "tree/train/bee/0.png").write_bytes(b"no image")
    assert run("datasets", "check", TREE, "--data-root", tree).exit_code == 0
    done = run("datasets", "check", TREE, "--data-root", tree, "--all")
    assert done.exit_code == 2
    assert "corrupt image" in done.output
    assert "bee/0.png" in done.output


def test_check_counts_groups_of_class_and_bias(run: Run) -> None:
    found = json.loads(run("datasets", "check", "biased-digits", "--json").stdout)["splits"]["train"]
    groups = found["group_counts"]
    assert {name: sum(counts.values()) for name, counts in groups.items()} == found["class_counts"]
    rows = run("datasets", "check", "biased-digits").stdout.splitlines()
    assert "\t".join(["class", *(f"bias {number}" for number in range(10))]) in rows
    assert "\t".join(["0", *map(str, groups["0"].values())]) in rows
