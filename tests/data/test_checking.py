"""The check of a dataset's files: its report, and the damage that it finds."""

from collections import Counter
from dataclasses import replace
from hashlib import md5
from pathlib import Path
from types import MappingProxyType

import pytest
import torch
from encoded_files import encoded, pixels, write_parquet

from contrasweep.data import (
    DATASETS,
    DatasetDamaged,
    DatasetFamily,
    DatasetSpec,
    datasets,
    inspect_dataset,
)
from contrasweep.data.checked_returns import checked_images
from contrasweep.data.options import Options
from contrasweep.data.spec import Split

HUB = "hub-parquet:path=set"


def _write_hub(root: Path, second: bytes) -> None:
    for split, count in (("train", 3), ("test", 2)):
        images = [encoded(pixels(0)), second, encoded(pixels(2))]
        write_parquet(root / f"set/{split}-0.parquet", images[:count], [1, 0, 1][:count])


def test_the_report_counts_and_decodes(tmp_path: Path) -> None:
    _write_hub(tmp_path, encoded(pixels(1)))
    report = inspect_dataset(HUB, tmp_path)
    train, test = report.splits
    assert (train.images, train.shape, train.class_counts) == (3, (3, 8, 8), (1, 2))
    assert (test.images, test.class_counts, test.unlabelled) == (2, (1, 1), 0)
    assert report.checksums == ()
    # Of encoded images one is decoded, of all of them every one.
    assert (train.decoded, train.mean_level) == (1, pytest.approx(pixels(0).mean()))
    every = inspect_dataset(HUB, tmp_path, every_image=True).splits[1]
    mean = (pixels(0).mean() + pixels(1).mean()) / 2
    assert (every.decoded, every.mean_level) == (2, pytest.approx(mean))


def test_a_damaged_image_is_found_when_every_one_is_decoded(tmp_path: Path) -> None:
    _write_hub(tmp_path, encoded(pixels(1))[:80])
    inspect_dataset(HUB, tmp_path)
    with pytest.raises(DatasetDamaged, match=r"train-0\.parquet, row 1"):
        inspect_dataset(HUB, tmp_path, every_image=True)
    skipping = inspect_dataset(f"{HUB},corrupt=skip", tmp_path, every_image=True)
    assert [split.images for split in skipping.splits] == [2, 1]


def test_all_damaged_images_of_both_splits_are_counted(tmp_path: Path) -> None:
    whole, broken = [encoded(pixels(row)) for row in range(8)], encoded(pixels(0))[:80]
    write_parquet(tmp_path / "set/train-0.parquet", [whole[0], *[broken] * 6, whole[7]], [0, 1] * 4)
    write_parquet(tmp_path / "set/test-0.parquet", [whole[1], broken], [0, 1])
    said = (
        r"7 corrupt images of 10: .*train-0\.parquet, row 1, .*row 5 and 2 more cannot be decoded\. "
        "Replace them, or leave such images out with the option corrupt=skip"
    )
    with pytest.raises(DatasetDamaged, match=said):
        inspect_dataset(HUB, tmp_path, every_image=True)


def test_images_in_memory_are_all_looked_at() -> None:
    train, _ = inspect_dataset("digits").splits
    whole = datasets.load_training("digits").train
    assert train.decoded == train.images == len(whole)
    assert train.mean_level == pytest.approx(float(whole.pixels.double().mean()))
    assert train.class_counts == tuple(whole.labels.bincount().tolist())


def test_images_are_counted_by_class_and_bias() -> None:
    train, test = inspect_dataset("biased-digits").splits
    whole = datasets.load_training("biased-digits").train
    assert whole.bias is not None
    counted = Counter(zip(whole.labels.tolist(), whole.bias.tolist(), strict=True))
    assert train.group_counts == tuple(tuple(counted[one, bias] for bias in range(10)) for one in range(10))
    assert test.group_counts is not None
    assert tuple(map(sum, test.group_counts)) == test.class_counts
    assert inspect_dataset("digits").splits[0].group_counts is None


def _family(file: str, published: str, *, images: int) -> DatasetFamily:
    digits = DATASETS["digits"]

    def describe(root: Path, options: Options) -> DatasetSpec:
        return replace(digits.describe(root, options), name="listed", train_size=images)

    return replace(
        digits,
        name="listed",
        describe=describe,
        checksums=lambda: MappingProxyType({file: published, "absent": "0" * 32}),
    )


def test_published_checksums_and_counts_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"content")
    right = md5(b"content").hexdigest()
    listed = {
        "right": _family("file", right, images=1438),
        "wrong": _family("file", "0" * 32, images=1438),
        "few": checked_images(_family("file", right, images=1437)),
    }
    monkeypatch.setattr(datasets, "DATASETS", MappingProxyType(listed))
    assert inspect_dataset("right", tmp_path).checksums == ("file",)
    with pytest.raises(DatasetDamaged, match=f"file has the MD5 {right}, published is 0000"):
        inspect_dataset("wrong", tmp_path)
    with pytest.raises(DatasetDamaged, match="train split has 1,438 images; allowed: 1,437, its train_size"):
        inspect_dataset("few", tmp_path)


def test_images_without_a_label_are_counted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    digits = DATASETS["digits"]

    def read(root: Path, split: Split, options: Options) -> datasets.LabelledImages:
        images = digits.read(root, split, options)
        labels = images.labels.clone()
        labels[:5] = -1
        return replace(images, labels=labels)

    monkeypatch.setattr(datasets, "DATASETS", {"digits": replace(digits, read=read)})
    train, _ = inspect_dataset("digits").splits
    assert train.unlabelled == 5
    assert sum(train.class_counts) == train.images - 5
    assert torch.tensor(train.class_counts).min() > 0
