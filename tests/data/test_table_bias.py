"""Bias labels in a column of tables: `hub-parquet:...,bias=COLUMN`."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from encoded_files import encoded, pixels, write_parquet

from contrasweep.data import DatasetDamaged, check_available, dataset_spec, load_test, load_training

NAME = "hub-parquet:path=set"
BIASED = f"{NAME},bias=site"


def write(folder: Path, split: str, values: Sequence[object], labels: Sequence[int] | None = None) -> None:
    """Write a split whose images have these values in the column `site`."""
    file, rows = folder / f"set/{split}.parquet", range(len(values))
    write_parquet(file, [encoded(pixels(row)) for row in rows], labels or [row % 2 for row in rows])
    pq.write_table(pq.read_table(file).append_column("site", pa.array(values)), file)


def test_words_are_numbered_over_both_splits(tmp_path: Path) -> None:
    write(tmp_path, "train", ["b", "a", "b", "a"])
    write(tmp_path, "test", ["c", "b"])
    check_available(BIASED, tmp_path)
    spec = dataset_spec(BIASED, tmp_path)
    assert (spec.bias_classes, spec.bias_names, spec.headline) == (3, ("a", "b", "c"), "balanced_accuracy")
    train, test = load_training(BIASED, tmp_path).train, load_test(BIASED, tmp_path)
    assert train.bias is not None
    assert test.bias is not None
    assert (train.bias.tolist(), test.bias.tolist()) == ([1, 0, 1, 0], [2, 1])
    assert load_training(NAME, tmp_path).train.bias is None
    assert spec.fingerprint != dataset_spec(NAME, tmp_path).fingerprint


def test_numbers_need_not_begin_with_0(tmp_path: Path) -> None:
    write(tmp_path, "train", [7, 3] * 10)
    spec, train, test = (
        dataset_spec(BIASED, tmp_path),
        load_training(BIASED, tmp_path).train,
        load_test(BIASED, tmp_path),
    )
    assert (spec.bias_classes, spec.told_biases) == (2, ("3", "7"))
    assert train.bias is not None
    assert test.bias is not None
    # A tenth of the images is cut off, each with its own bias, which is that of its class here.
    assert (train.bias == 1 - train.labels).all()
    assert (test.bias == 1 - test.labels).all()


@pytest.mark.parametrize(
    ("values", "option", "problem"),
    [
        (["a", "b", None, "a"], "site", "column site of .*: row 2 has no bias label"),
        ([1, 2, -1, 1], "site", "row 2 has no bias label"),
        (["a"] * 4, "site", "gives training images 1 different bias label; allowed: 2 to 1,000"),
        ([0.5, 0.1, 0.2, 0.3], "site", "column site of .* is double: bias labels are whole numbers or words"),
        (["a", "b"] * 2, "sites", "'sites'.*Did you mean 'site'"),
        (["a", "b"] * 2, "site,label=none", "has a bias, but no labels"),
    ],
)
def test_a_column_that_is_none_of_bias_labels_is_refused(
    tmp_path: Path, values: list[object], option: str, problem: str
) -> None:
    write(tmp_path, "train", values * 3)
    with pytest.raises(DatasetDamaged, match=problem):
        check_available(f"{NAME},bias={option}", tmp_path)
