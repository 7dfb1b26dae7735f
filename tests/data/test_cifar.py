"""CIFAR's pickled batches: read like torchvision does; only arrays are unpickled."""

import hashlib
import os
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from contrasweep.data import DATASETS, DatasetDamaged, DatasetMissing, dataset_spec
from contrasweep.data.sources.cifar import (
    CIFAR10_LAYOUT,
    CIFAR100_LAYOUT,
    CifarLayout,
    cifar_family,
    read_cifar,
)


def _batch(seed: int, layout: CifarLayout, images: int = 4) -> dict[str, object]:
    generator = np.random.default_rng(seed)
    levels = generator.integers(0, 256, (images, 3072), dtype=np.uint8)
    return {"data": levels, layout.label_key: generator.integers(0, layout.classes, images).tolist()}


def write_cifar(root: Path, layout: CifarLayout) -> CifarLayout:
    """Write small batches in the places of the layout; return the layout with their sizes."""
    folder = root / layout.folder
    folder.mkdir(parents=True)
    for seed, file in enumerate([*layout.train, *layout.test]):
        (folder / file).write_bytes(pickle.dumps(_batch(seed, layout), protocol=2))
    (file,) = layout.meta
    (folder / file).write_bytes(pickle.dumps({layout.names_key: [f"c{n}" for n in range(layout.classes)]}))
    parts = {part: {file: (folder / file).stat().st_size for file in getattr(layout, part)} for part in PARTS}
    return replace(layout, **parts)


PARTS = ("train", "test", "meta")


@pytest.mark.parametrize("layout", [CIFAR10_LAYOUT, CIFAR100_LAYOUT], ids=lambda layout: layout.name)
def test_batches_are_read_as_torchvision_reads_them(
    tmp_path: Path, layout: CifarLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchvision import datasets

    write_cifar(tmp_path, layout)
    theirs = getattr(datasets, layout.name.upper())
    # These are not the published files.
    monkeypatch.setattr(theirs, "_check_integrity", lambda self: True)
    monkeypatch.setattr(theirs, "_load_meta", lambda self: None)
    for split in ("train", "test"):
        ours = read_cifar(tmp_path, split, layout)  # type: ignore[arg-type]
        reference = theirs(str(tmp_path), train=split == "train")
        assert np.array_equal(ours.pixels.permute(0, 2, 3, 1).numpy(), reference.data)
        assert ours.labels.tolist() == reference.targets


def test_files_are_checked_by_size_and_give_the_classes_names(tmp_path: Path) -> None:
    family = cifar_family(write_cifar(tmp_path, CIFAR10_LAYOUT))
    options = family.parse("")
    family.check(tmp_path, options)
    assert family.describe(tmp_path, options).class_names[:2] == ("c0", "c1")
    assert len(family.read(tmp_path, "train", options)) == 20
    assert len(family.read(tmp_path, "test", options)) == 4
    (tmp_path / "cifar-10-batches-py/data_batch_3").write_bytes(b"short")
    with pytest.raises(DatasetMissing, match="data_batch_3 has 5 bytes, expected"):
        family.check(tmp_path, options)


def test_the_published_files_are_those_of_torchvision() -> None:
    for name, count in (("cifar10", 7), ("cifar100", 3)):
        sums = DATASETS[name].checksums()
        assert len(sums) == count
        assert all(len(md5) == len(hashlib.md5().hexdigest()) for md5 in sums.values())
    assert set(DATASETS["cifar10"].checksums()) == {
        f"cifar-10-batches-py/{file}" for part in PARTS for file in getattr(CIFAR10_LAYOUT, part)
    }


def test_each_is_described_without_its_files(tmp_path: Path) -> None:
    spec = dataset_spec("cifar100", tmp_path)
    assert (spec.classes, spec.train_size, spec.test_size, spec.image_size) == (100, 50_000, 10_000, 32)
    assert spec.class_names == ()


def test_unequal_classes_are_an_option(tmp_path: Path) -> None:
    # 500 to 5,000 images by tenths; of CIFAR-100 ten classes share a level.
    assert dataset_spec("cifar10:imbalance=linear", tmp_path).train_size == 500 * sum(range(1, 11))
    assert dataset_spec("cifar100:imbalance=linear", tmp_path).train_size == 10 * 50 * sum(range(1, 11))
    assert dataset_spec("cifar10:imbalance=linear", tmp_path).name == "cifar10:imbalance=linear"


def test_training_opens_no_test_file(tmp_path: Path) -> None:
    layout = write_cifar(tmp_path, CIFAR10_LAYOUT)
    (tmp_path / layout.folder / "test_batch").unlink()
    assert len(read_cifar(tmp_path, "train", layout)) == 20


class _Harmful:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> object:
        return os.mkdir, (str(self.target),)


def test_a_pickle_that_would_run_code_is_refused(tmp_path: Path) -> None:
    layout = write_cifar(tmp_path, CIFAR10_LAYOUT)
    target = tmp_path / "made"
    (tmp_path / layout.folder / "test_batch").write_bytes(pickle.dumps({"data": _Harmful(target)}))
    with pytest.raises(DatasetDamaged, match=r"test_batch is not a file of CIFAR: .* asks for posix\.mkdir"):
        read_cifar(tmp_path, "test", layout)
    assert not target.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [0, 1, 10, 3]}, "label 10 of row 2 of .*test_batch is out of range: 10 classes"),
        ({"labels": [0, 1]}, r"uint8 \(2, 3072\) for its 2 labels, has \(4, 3072\)"),
        ({"data": np.zeros((4, 3072))}, "must hold uint8"),
        ({"labels": None}, "not a batch of CIFAR"),
    ],
)
def test_the_contents_of_a_batch_are_checked(tmp_path: Path, change: dict[str, object], message: str) -> None:
    layout = write_cifar(tmp_path, CIFAR10_LAYOUT)
    batch = {**_batch(0, layout), **change}
    (tmp_path / layout.folder / "test_batch").write_bytes(pickle.dumps(batch))
    with pytest.raises(DatasetDamaged, match=message):
        read_cifar(tmp_path, "test", layout)


def test_a_truncated_batch_is_named(tmp_path: Path) -> None:
    layout = write_cifar(tmp_path, CIFAR10_LAYOUT)
    path = tmp_path / layout.folder / "test_batch"
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(DatasetDamaged, match="test_batch is not a file of CIFAR"):
        read_cifar(tmp_path, "test", layout)


def test_pixels_keep_their_channels_and_rows(tmp_path: Path) -> None:
    layout = write_cifar(tmp_path, CIFAR10_LAYOUT)
    levels = np.zeros((1, 3072), dtype=np.uint8)
    levels[0, 1024 + 2 * 32 + 5] = 200
    (tmp_path / layout.folder / "test_batch").write_bytes(pickle.dumps({"data": levels, "labels": [7]}))
    image = read_cifar(tmp_path, "test", layout).pixels[0]
    assert torch.nonzero(image).tolist() == [[1, 2, 5]]
