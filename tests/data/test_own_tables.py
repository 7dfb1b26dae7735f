"""Parquet and tar files as users write them themselves: names of files, kinds of columns, one class alone."""

import io
import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from encoded_files import encoded, pixels, write_parquet

from contrasweep.data import DatasetDamaged, DatasetMissing, check_available, dataset_spec, load_test

IMAGES = [encoded(pixels(seed)) for seed in range(20)]
NAME = "hub-parquet:path=set"


def test_a_split_may_be_one_file_of_its_name(tmp_path: Path) -> None:
    write_parquet(tmp_path / "set/train.parquet", IMAGES[:12], [0, 1, 2] * 4)
    assert (dataset_spec(NAME, tmp_path).train_size, dataset_spec(NAME, tmp_path).test_size) == (11, 1)
    write_parquet(tmp_path / "set/validation.parquet", IMAGES[12:14], [2, 0])
    assert load_test(NAME, tmp_path).labels.tolist() == [2, 0]
    write_parquet(tmp_path / "set/training.parquet", IMAGES[:2], [0, 1])
    assert dataset_spec(NAME, tmp_path).train_size == 12
    write_parquet(tmp_path / "set/train-0.parquet", IMAGES[:6], [0, 1, 2] * 2)
    assert dataset_spec(NAME, tmp_path).train_size == 6, "numbered files go first"


def test_the_columns_are_told_with_their_types(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    pq.write_table(pa.table({"image": IMAGES, "label": [0, 1] * 10}), tmp_path / "set/train.parquet")
    with pytest.raises(DatasetDamaged, match=r"it has image \(binary\), label \(int64\)$"):
        check_available(NAME, tmp_path)


@pytest.mark.parametrize(("label", "told"), [(0, "0"), (7, "7")])
def test_one_class_alone_in_a_column_is_refused(tmp_path: Path, label: int, told: str) -> None:
    write_parquet(tmp_path / "set/train.parquet", IMAGES, [label] * len(IMAGES))
    with pytest.raises(DatasetDamaged, match=rf"column label of .* has one class, {told}, .*add label=none"):
        check_available(NAME, tmp_path)
    assert dataset_spec(f"{NAME},label=none", tmp_path).classes == 0


def test_one_class_alone_in_tar_files_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "train.tar", "w") as tar:
        for number, image in enumerate(IMAGES):
            for ending, content in (("png", image), ("cls", b"bird")):
                entry = tarfile.TarInfo(f"{number}.{ending}")
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    name = f"tar-shards:path={tmp_path},size=8"
    with pytest.raises(DatasetMissing, match=r"has one class, bird, .*add labels=none"):
        check_available(name)
    assert torch.equal(load_test(f"{name},labels=none").labels, torch.tensor([-1, -1]))
