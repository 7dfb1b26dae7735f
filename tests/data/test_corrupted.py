"""Corrupted CIFAR-10 made from CIFAR-10: which image gets which corruption, what is kept, what is refused."""

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from cifar_files import TEST, TRAIN, accept, write_batches, write_hub_files
from real_data import real_root

from contrasweep.data import (
    DatasetDamaged,
    DatasetMissing,
    check_available,
    dataset_spec,
    load_test,
    load_training,
)
from contrasweep.data.corruptions import CORRUPTIONS, frost_pictures
from contrasweep.data.sources.biased_files import CORRUPTED_CIFAR10
from contrasweep.data.sources.corrupted import KINDS, assigned, corrupted, read_plain

NAME = "corrupted-cifar10:percent=5,layout=derived"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    write_batches(root)
    write_hub_files(root / "hub")
    return root


@pytest.fixture
def root(written: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    accept(monkeypatch, written)
    yield written
    frost_pictures.frost_pictures.cache_clear()


def test_every_kind_has_ten_known_corruptions() -> None:
    for names in KINDS.values():
        assert len(names) == 10
        assert set(names) <= CORRUPTIONS.keys()


@pytest.mark.parametrize(("percent", "others"), [(0.5, 25), (1, 50), (2, 100), (5, 250)])
def test_a_class_gets_its_corruptions_one_after_the_other(percent: float, others: int) -> None:
    labels = torch.arange(10).repeat(5000)
    bias = assigned(labels, 1 - percent / 100)
    counts = torch.bincount(labels * 10 + bias, minlength=100).view(10, 10)
    assert counts.diagonal().tolist() == [5000 - others] * 10
    # The nine others share what is left to within one image, by rounding.
    for label, row in enumerate(counts):
        rest = torch.cat([row[:label], row[label + 1 :]])
        assert int(rest.max() - rest.min()) <= 1
    for label in range(10):
        mine = bias[labels == label]
        assert torch.equal(mine, mine.sort().values)


def test_the_corruptions_of_a_small_class_begin_where_their_shares_add_up_to() -> None:
    # 7 images with 0.5, and 0.5 / 9 for each other: 3.5, 3.89, 4.28, ... 7 are rounded, halves to even.
    assert assigned(torch.zeros(7, dtype=torch.int64), 0.5).tolist() == [0, 0, 0, 0, 3, 6, 8]


def test_training_images_are_biased_and_test_images_are_not(root: Path) -> None:
    spec = dataset_spec(NAME, root)
    assert (spec.name, spec.train_size, spec.test_size, spec.bias_classes) == (NAME, TRAIN, TEST, 10)
    train, test = load_training(NAME, root).train, load_test(NAME, root)
    assert train.images.shape == (TRAIN, 3, 32, 32)
    assert int((train.labels != train.bias).sum()) == 0.05 * TRAIN
    assert torch.bincount(test.labels * 10 + test.bias, minlength=100).tolist() == [TEST // 100] * 100


def test_files_of_the_hub_give_the_same_images(root: Path) -> None:
    first, second = (load_test(f"{NAME}{path}", root) for path in ("", ",path=hub"))
    assert torch.equal(first.pixels, second.pixels)
    assert torch.equal(first.labels, second.labels)


def test_an_image_is_the_same_at_every_percentage_where_its_corruption_is(root: Path) -> None:
    few, many = (load_training(NAME.replace("=5", percent), root).train for percent in ("=1", "=5"))
    same = few.bias == many.bias
    assert 0.9 < same.float().mean() < 1
    assert torch.equal(few.pixels[same], many.pixels[same])


@pytest.mark.parametrize("options", ["severity=2", "type=1"])
def test_severity_and_type_change_the_images(root: Path, options: str) -> None:
    given, other = load_test(NAME, root), load_test(f"{NAME},{options}", root)
    assert torch.equal(given.bias, other.bias)
    assert not torch.equal(given.pixels, other.pixels)


def test_images_that_are_kept_are_made_once_and_checked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = load_test(NAME, root)
    monkeypatch.setattr("contrasweep.data.sources.corrupted.corrupted", None)
    assert torch.equal(load_test(NAME, root).pixels, made.pixels)
    kept = [*(root / "cache/contrasweep/derived").glob("*type0-severity4-test-*/images.npy")]
    stored = kept[0].read_bytes()
    for file in kept:
        file.write_bytes(stored[:-1] + bytes([stored[-1] ^ 1]))
    with pytest.raises(DatasetDamaged, match=r"images\.npy has changed since it was made: delete "):
        load_test(NAME, root)
    for file in kept:
        file.write_bytes(stored)


def test_validation_images_get_other_corruptions_that_say_nothing_of_the_class(root: Path) -> None:
    assert dataset_spec(NAME, root).splits[0] == "recoloured"
    whole = load_training(NAME, root).train
    first, again, other = (load_training(NAME, root, 0.25, seed, split="recoloured") for seed in (0, 0, 1))
    held, same, new = (one.validation for one in (first, again, other))
    assert held is not None
    assert same is not None
    assert new is not None
    assert torch.bincount(held.labels * 10 + held.bias, minlength=100).tolist() == [1] * 100
    assert int((first.train.labels != first.train.bias).sum()) == int((whole.labels != whole.bias).sum())
    assert torch.equal(held.pixels, same.pixels)
    assert not torch.equal(held.pixels, new.pixels)


def test_a_validation_image_is_its_original_under_the_new_corruption(root: Path) -> None:
    name = f"{NAME},type=1"
    held = load_training(name, root, 0.25, split="recoloured").validation
    assert held is not None
    clean = held.bias == KINDS["1"].index("Original")
    plain = read_plain(root, "train", {"path": "cifar-10-batches-py"})
    originals = {
        image.numpy().tobytes(): int(label) for image, label in zip(plain.pixels, plain.labels, strict=True)
    }
    found = [originals[image.numpy().tobytes()] for image in held.pixels[clean]]
    assert found == held.labels[clean].tolist()
    assert len(found) == 10


def test_published_files_cannot_be_corrupted_again(root: Path) -> None:
    options = CORRUPTED_CIFAR10.parse("percent=5")
    assert "recoloured" not in CORRUPTED_CIFAR10.describe(root, options).splits
    assert CORRUPTED_CIFAR10.recoloured is not None
    with pytest.raises(ValueError, match="layout=png cannot be corrupted again; those of layout=derived can"):
        CORRUPTED_CIFAR10.recoloured(root, options, torch.arange(3), 0)


def test_what_is_missing_is_named(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DatasetMissing, match=r"cifar-10-batches-py does not exist.*cs\.toronto\.edu"):
        check_available(NAME, tmp_path)
    with pytest.raises(DatasetMissing, match="layout=derived"):
        check_available("corrupted-cifar10", tmp_path)
    shutil.copytree(root / "hub", tmp_path / "hub")
    (tmp_path / "hub/test-00000-of-00001.parquet").unlink()
    with pytest.raises(DatasetMissing, match=r"hub is not CIFAR-10: training and test images"):
        check_available(f"{NAME},path=hub", tmp_path)
    monkeypatch.setattr(frost_pictures, "_folder", lambda: tmp_path)
    with pytest.raises(DatasetMissing, match="pip install --no-deps imagecorruptions"):
        check_available(NAME, root)
    check_available(f"{NAME},type=1", root)


def test_another_set_in_parquet_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrasweep.data.sources.corrupted.SIZES", {"train": 50_000, "test": 10_000})
    with pytest.raises(DatasetMissing, match=r"hub is not CIFAR-10: .*\(50000, 10000, 10, 32\).*\(400, 200"):
        check_available(f"{NAME},path=hub", root)


def test_real_images_are_those_of_the_first_time() -> None:
    """A hash of the JPEG copy of CIFAR-10 under the corruptions that are the same with every library."""
    name = "corrupted-cifar10:layout=derived,path=cifar10-jpeg"
    options = {"path": "cifar10-jpeg", "type": "0", "severity": "4"}
    rows = torch.arange(100)
    plain = read_plain(real_root(name), "test", options).subset(rows)
    exact = torch.tensor([KINDS["0"].index(one) for one in ("Frost", "Contrast", "Spatter", "Pixelate")])
    made = corrupted(plain, exact[rows % len(exact)], options, "test", rows)
    assert hashlib.sha256(made.pixels.numpy().tobytes()).hexdigest()[:16] == "a78129825fd0b95f"
