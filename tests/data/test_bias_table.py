"""Bias labels from a CSV file that names the images: `image-folder:...,bias=FILE.csv`."""

from pathlib import Path

import pytest
import torch
from encoded_files import encoded, pixels

from contrasweep.data import (
    DatasetDamaged,
    DatasetMissing,
    check_available,
    dataset_spec,
    load_test,
    load_training,
)
from contrasweep.data.bias_table import read_bias_table
from contrasweep.data.fingerprint import Listing
from contrasweep.data.named_rows import MOST_CATEGORIES
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.resolve import resolve

NAME = "image-folder:path=tree,size=8,bias=site.csv"
TRAIN = Listing(Path("/photos/train"), ("ant/a.png", "ant/b.png", "cat/a.png"))
TEST = Listing(Path("/photos/val"), ("ant/a.png", "cat/c.png"))
ROWS = (
    ("train/cat/a.png", "north"),
    ("val/ant/a.png", "west"),
    ("train/ant/a.png", "south"),
    ("train/ant/b.png", "north"),
    ("val/cat/c.png", "south"),
    ("val/cat/unused.png", ""),
)
"""In another order than the images; west is in the test split alone."""


def write(folder: Path, rows: tuple[tuple[str, str], ...] = ROWS, header: str = "image,site") -> Path:
    path = folder / "site.csv"
    path.write_text("\n".join([header, *map(",".join, rows)]) + "\n", encoding="utf-8")
    return path


def write_tree(folder: Path, *splits: Listing) -> None:
    for seed, (split, name) in enumerate((one.folder.name, name) for one in splits for name in one.names):
        place = folder / "tree" / split / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(encoded(pixels(seed)))


def test_words_are_numbered_over_both_splits(tmp_path: Path) -> None:
    found = read_bias_table(write(tmp_path), TRAIN, TEST)
    assert found.values == ("north", "south", "west")
    assert [one.tolist() for one in found.splits] == [[1, 0, 0], [2, 1]]
    assert {one.dtype for one in found.splits} == {torch.int64}


@pytest.mark.parametrize(
    ("rows", "header", "problem"),
    [
        (ROWS, "image,site,camera", "has 3 columns|CSV parse error"),
        (tuple((name, f"{site},x") for name, site in ROWS), "image,site,camera", "it has site, camera"),
        (ROWS[1:], "image,site", "lacks the rows of 1 of 3 images: 'train/cat/a.png'"),
        (ROWS[:1] + ROWS[2:], "image,site", "lacks the rows of 1 of 2 images: 'val/ant/a.png'"),
        (
            tuple((name, "" if name == "val/cat/c.png" else site) for name, site in ROWS),
            "image,site",
            "column 'site' has no label of 'val/cat/c.png'",
        ),
        (
            tuple((name, "north" if name.startswith("train") else site) for name, site in ROWS),
            "image,site",
            "column 'site' gives training images 1 different bias label; allowed: 2 to 1,000",
        ),
        (
            tuple((name.partition("/")[2], site) for name, site in ROWS[2:]),
            "image,site",
            "1 names stand for an image of each split: 'ant/a.png'.* as in train/ant/a.png and val/ant/a.png",
        ),
    ],
)
def test_a_table_that_does_not_fit_is_refused(
    tmp_path: Path, rows: tuple[tuple[str, str], ...], header: str, problem: str
) -> None:
    with pytest.raises(DatasetDamaged, match=problem):
        read_bias_table(write(tmp_path, rows, header), TRAIN, TEST)


def test_a_column_of_remarks_is_refused(tmp_path: Path) -> None:
    names = tuple(f"cat/{number}.png" for number in range(MOST_CATEGORIES + 1))
    path = write(tmp_path, tuple((name, f"on {name}") for name in names))
    with pytest.raises(DatasetDamaged, match="gives training images 1,001 different bias labels"):
        read_bias_table(path, Listing(Path("/photos"), names))


def test_both_splits_of_a_folder_have_it(tmp_path: Path) -> None:
    write_tree(tmp_path, TRAIN, TEST)
    before = dataset_spec("image-folder:path=tree,size=8", tmp_path)
    path = write(tmp_path)
    check_available(NAME, tmp_path)
    spec = dataset_spec(NAME, tmp_path)
    assert (spec.bias_classes, spec.headline, before.bias_classes) == (3, "balanced_accuracy", None)
    assert (len(spec.bias_names), before.bias_names, before.told_biases) == (3, (), ())
    train, test = load_training(NAME, tmp_path).train, load_test(NAME, tmp_path)
    assert train.bias is not None
    assert test.bias is not None
    assert (train.bias.tolist(), test.bias.tolist()) == ([1, 0, 0], [2, 1])
    assert spec.fingerprint.startswith(before.fingerprint)
    write(tmp_path, (*ROWS[:3], ("train/ant/b.png", "south"), *ROWS[4:]))
    assert dataset_spec(NAME, tmp_path).fingerprint != spec.fingerprint
    path.unlink()
    with pytest.raises(DatasetMissing, match=r"bias=site\.csv: .* is not there"):
        dataset_spec(NAME, tmp_path)


def test_images_that_are_cut_off_as_a_test_split_take_their_bias_with_them(tmp_path: Path) -> None:
    names = tuple(f"{label}/{number:02}.png" for label in ("ant", "cat") for number in range(10))
    write_tree(tmp_path, Listing(Path("/"), names))
    sites = {name: str(number % 2) for number, name in enumerate(names)}
    write(tmp_path, tuple(sites.items()))
    whole = load_training(NAME, tmp_path).train, load_test(NAME, tmp_path)
    assert [len(one) for one in whole] == [18, 2]
    assert sum(int(one.bias.sum()) for one in whole if one.bias is not None) == 10


def test_other_files_and_images_without_labels_are_refused(tmp_path: Path) -> None:
    write_tree(tmp_path, TRAIN, TEST)
    write(tmp_path)
    with pytest.raises(DatasetMissing, match="bias= does not go with labels=none"):
        dataset_spec(f"{NAME},labels=none", tmp_path)
    with pytest.raises(DatasetDamaged, match=r"bias=site\.npy: bias labels are read from a table \(\.csv\)"):
        dataset_spec("image-folder:path=tree,size=8,bias=site.npy", tmp_path)


def test_a_method_that_needs_a_bias_is_told_how_to_get_one(tmp_path: Path) -> None:
    write_tree(tmp_path, TRAIN, TEST)
    told = r"path=tree,size=8,bias=\.\.\. would have one \(table \(\.csv\) with the bias label of each"
    with pytest.raises(InputError, match=told):
        resolve("biascon", "image-folder:path=tree,size=8", data_root=tmp_path)
