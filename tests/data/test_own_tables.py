"""Parquet and tar files as users write them themselves: names of files, kinds of columns, one class alone."""

import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from encoded_files import encoded, pixels, write_parquet

from contrasweep.data import (
    DatasetDamaged,
    DatasetMissing,
    check_available,
    dataset_spec,
    load_test,
    load_training,
)

LEVELS = [torch.from_numpy(pixels(seed)).permute(2, 0, 1) for seed in range(20)]
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


def test_copies_in_the_cache_are_of_this_content_and_this_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is written again with as many bytes, and has a second column of images."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file, bare = tmp_path / "set/train.parquet", [encoded(pixels(seed), "BMP") for seed in range(20)]
    file.parent.mkdir()
    sizes = []
    for shift in (0, 1):
        first, second = ([bare[(row + by) % 20] for row in range(12)] for by in (shift, shift + 2))
        cells = {name: [{"bytes": one} for one in own] for name, own in (("img", first), ("other", second))}
        table = pa.table({**cells, "label": [0, 1] * 6})
        for split in (file, file.with_stem("test")):
            pq.write_table(table, split, compression="none", use_dictionary=False)
        sizes.append(file.stat().st_size)
        for option, by in (("", shift), (",image=other", shift + 2)):
            drawn = load_training(f"{NAME},label=label{option}", tmp_path, placement="stream").train.images
            assert torch.equal(drawn[torch.tensor([5, 2])], torch.stack([LEVELS[5 + by], LEVELS[2 + by]]))
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize(("label", "told"), [(0, "0"), (7, "7")])
def test_one_class_alone_in_a_column_is_refused(tmp_path: Path, label: int, told: str) -> None:
    write_parquet(tmp_path / "set/train.parquet", IMAGES, [label] * len(IMAGES))
    with pytest.raises(DatasetDamaged, match=rf"column label of .* has one class, {told}, .*add label=none"):
        check_available(NAME, tmp_path)
    assert dataset_spec(f"{NAME},label=none", tmp_path).classes == 0


def test_one_class_alone_in_tar_files_is_refused(tmp_path: Path) -> None:
    _write_tar(tmp_path, [[("cls", b"bird")]] * len(IMAGES))
    name = f"tar-shards:path={tmp_path},size=8"
    with pytest.raises(DatasetMissing, match=r"has one class, bird, .*add labels=none"):
        check_available(name)
    assert torch.equal(load_test(f"{name},labels=none").labels, torch.tensor([-1, -1]))


def test_the_rows_of_a_condition_stay_with_their_samples_where_test_images_are_cut_off(
    tmp_path: Path,
) -> None:
    _write_tar(tmp_path, [[("cls", b"%d" % (number % 2))] for number in range(len(IMAGES))])
    np.save(tmp_path / "condition.npy", np.arange(len(IMAGES), dtype=np.float32))
    train = load_training(f"tar-shards:path={tmp_path},size=8,condition={tmp_path}/condition.npy").train
    assert train.condition is not None
    rows = train.condition[:, 0].long().tolist()
    assert len(rows) == 18
    assert torch.equal(train.pixels, torch.stack([LEVELS[row] for row in rows]))


@pytest.mark.parametrize("order", [1, -1])
def test_a_label_that_stands_alone_comes_before_one_among_other_facts(tmp_path: Path, order: int) -> None:
    both = [[("cls", b"%d" % (row % 2)), ("json", b'{"label": 5}')][::order] for row in range(len(IMAGES))]
    _write_tar(tmp_path, both)
    assert dataset_spec(f"tar-shards:path={tmp_path},size=8").class_names == ("0", "1")


def _write_tar(folder: Path, labels: Sequence[Sequence[tuple[str, bytes]]]) -> None:
    """Write samples with the endings and contents of their labels."""
    with tarfile.open(folder / "train.tar", "w") as tar:
        for number, (image, others) in enumerate(zip(IMAGES, labels, strict=True)):
            for ending, content in (("png", image), *others):
                entry = tarfile.TarInfo(f"{number}.{ending}")
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
