"""bFFHQ and Corrupted CIFAR-10: read from their published layouts; incomplete copies are refused."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from biased_trees import report_counts, write_bffhq, write_cifar10c

from contrasweep.data import (
    DatasetDamaged,
    DatasetMissing,
    LabelledImages,
    StreamedImages,
    check_available,
    dataset_spec,
    inspect_dataset,
    load_test,
    load_training,
)
from contrasweep.data.sources import biased_files

CIFAR = "corrupted-cifar10:percent=5"
NPY = "corrupted-cifar10:percent=2,layout=npy,severity=3"
NPY_FOLDER = "CorruptedCIFAR10-Type0-Skewed0.02-Severity3"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    write_bffhq(root)
    write_cifar10c(root)
    return root


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the sizes of the archives to those that the tests write."""
    report_counts(monkeypatch)


@pytest.fixture
def root(written: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(written, tmp_path / "data"))


def _told(images: LabelledImages) -> tuple[list[int], list[int]]:
    """Return the class and the bias in the first pixel of each image."""
    assert isinstance(images.images, torch.Tensor)
    return images.images[:, 1, 0, 0].tolist(), images.images[:, 2, 0, 0].tolist()


@pytest.mark.parametrize(("name", "train", "test"), [("bffhq", 202, 2), (CIFAR, 210, 20)])
def test_class_and_bias_are_those_of_the_names(written: Path, name: str, train: int, test: int) -> None:
    check_available(name, written)
    spec = dataset_spec(name, written)
    assert (spec.name, spec.train_size, spec.test_size) == (name, train, test)
    for images, count in ((load_training(name, written).train, train), (load_test(name, written), test)):
        assert len(images) == count
        assert images.bias is not None
        assert (images.labels.tolist(), images.bias.tolist()) == _told(images)
        assert images.images.shape[1:] == (3, spec.image_size, spec.image_size)
    assert len(inspect_dataset(name, written, every_image=True).splits) == 2


def test_faces_are_enlarged_and_the_option_chooses_the_test_images(written: Path) -> None:
    spec = dataset_spec("bffhq", written)
    assert (spec.image_size, spec.view_size, spec.class_names) == (8, 224, ("age 0", "age 1"))
    for which, count, conflicting in (("conflict", 2, 2), ("all", 6, 2), ("valid", 2, 0)):
        test = load_test(f"bffhq:test={which}", written)
        assert test.bias is not None
        assert (len(test), int((test.labels != test.bias).sum())) == (count, conflicting)
        assert dataset_spec(f"bffhq:test={which}", written).test_size == count


def test_each_is_described_without_its_files(tmp_path: Path) -> None:
    for name, classes, folder in (("bffhq", 2, "bffhq"), ("corrupted-cifar10", 10, "cifar10c")):
        spec = dataset_spec(name, tmp_path)
        assert (spec.classes, spec.bias_classes, spec.folder) == (classes, classes, folder)
        with pytest.raises(DatasetMissing) as missing:
            check_available(name, tmp_path)
        for word in (str(tmp_path / folder), "0.5pct/align", "--data-root", "Learning-Debiased-Disentangled"):
            assert word in str(missing.value)
    assert dataset_spec(NPY, tmp_path).folder == NPY_FOLDER


@pytest.mark.parametrize(
    ("name", "lost", "message"),
    [
        ("bffhq", "bffhq/0.5pct/conflict", "0.5pct/conflict does not exist"),
        ("bffhq", "bffhq/test", "bffhq/test does not exist"),
        ("bffhq", "bffhq/0.5pct/align/1", "no bias-aligned training image of class 1"),
        ("bffhq", "bffhq/0.5pct/conflict/0", "no bias-conflicting training image of class 0"),
        (CIFAR, "cifar10c/5pct", "5pct/align does not exist"),
        (CIFAR, "cifar10c/5pct/conflict/7", "no bias-conflicting training image of class 7"),
    ],
)
def test_a_folder_that_is_lost_is_named(root: Path, name: str, lost: str, message: str) -> None:
    shutil.rmtree(root / lost)
    for use in (check_available, load_training):
        with pytest.raises(DatasetMissing, match=message):
            use(name, root)
    dataset_spec(name, root)


@pytest.mark.parametrize(
    ("name", "folder", "kept", "message"),
    [
        (
            "bffhq",
            "bffhq/0.5pct/align",
            189,
            r"it holds 189 bias-aligned training images, reported are 200\.",
        ),
        ("bffhq", "bffhq/test", 5, r"it holds 1 bias-conflicting test images, reported are 2\."),
        ("bffhq:test=all", "bffhq/test", 5, r"it holds 5 test images, reported are 6\."),
        ("bffhq:test=valid", "bffhq/valid", 1, r"it holds 1 validation images, reported are 2\."),
        (CIFAR, "cifar10c/5pct/align", 189, r"it holds 189 bias-aligned training images, reported are 200\."),
        (CIFAR, "cifar10c/test", 18, r"it holds 18 test images, reported are 20\."),
    ],
)
def test_an_incomplete_copy_is_refused_with_what_to_get(
    root: Path, name: str, folder: str, kept: int, message: str
) -> None:
    # Alphabetical order takes the classes in turn, as copies do; of bFFHQ's test the aligned ones come first.
    for file in sorted((root / folder).rglob("*.png"), key=lambda file: (file.name[0], file))[kept:]:
        file.unlink()
    with pytest.raises(DatasetMissing, match=message + ".*Get it from .*Learning-Debiased.*--data-root"):
        check_available(name, root)


def test_a_few_images_less_than_reported_are_no_part_of_an_archive(root: Path) -> None:
    for file in sorted((root / "bffhq/0.5pct/align").rglob("*.png"))[190:]:
        file.unlink()
    check_available("bffhq", root)
    assert dataset_spec("bffhq", root).train_size == 192


def test_a_class_that_is_cut_short_is_named(root: Path) -> None:
    for file in sorted((root / "cifar10c/5pct/align/7").iterdir())[:3]:
        file.unlink()
    with pytest.raises(DatasetMissing, match=r"it holds 17 bias-aligned training images of class 7, of 20\."):
        check_available(CIFAR, root)


def test_arrays_that_are_cut_short_are_found_without_reading_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write_npy(tmp_path, monkeypatch)
    file = tmp_path / NPY_FOLDER / "valid/images.npy"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(DatasetDamaged, match=r"valid/images\.npy is not an array of numbers, or only a part"):
        check_available(NPY, tmp_path)


@pytest.mark.parametrize(
    ("file", "message"),
    [("5_3_1.png", r"must be 0\.\.1, its name says 3 and 1"), ("readme.png", "must end in _CLASS_BIAS")],
)
def test_a_name_that_says_no_class_and_bias_is_refused(root: Path, file: str, message: str) -> None:
    shutil.copy(next((root / "bffhq/valid").iterdir()), root / "bffhq/valid" / file)
    with pytest.raises(DatasetDamaged, match=f"{file}: .*{message}"):
        load_test("bffhq:test=valid", root)


def test_training_opens_no_test_file(root: Path) -> None:
    for file in (root / "bffhq/test").iterdir():
        file.write_bytes(b"")
    train = load_training("bffhq", root, placement="stream").train
    assert isinstance(train.images, StreamedImages)
    assert int(train.pixels.max()) == 255


def _write_npy(root: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Write 12 + 10 images in the layout of Learning from Failure; return the training images."""
    monkeypatch.setattr(biased_files, "NPY_ROWS", {"train": 12, "valid": 10})
    whole = np.random.default_rng(0).integers(0, 256, (22, 32, 32, 3), dtype=np.uint8)
    numbers = np.stack([np.arange(22) % 10, np.arange(22) // 2 % 10], axis=1).astype(np.uint8)
    for part, rows in (("train", slice(12)), ("valid", slice(12, 22))):
        place = root / NPY_FOLDER / part
        place.mkdir(parents=True)
        np.save(place / "images.npy", whole[rows])
        np.save(place / "attrs.npy", numbers[rows])
    return whole[:12]


def test_arrays_are_read_with_channels_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = _write_npy(tmp_path, monkeypatch)
    check_available(NPY, tmp_path)
    train, test = load_training(NPY, tmp_path).train, load_test(NPY, tmp_path)
    assert np.array_equal(train.pixels.permute(0, 2, 3, 1).numpy(), stored)
    assert train.labels.tolist() == [row % 10 for row in range(12)]
    assert train.bias is not None
    assert train.bias.tolist() == [row // 2 % 10 for row in range(12)]
    assert test.labels.tolist() == [row % 10 for row in range(12, 22)]


def test_arrays_of_another_shape_or_range_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write_npy(tmp_path, monkeypatch)
    place = tmp_path / NPY_FOLDER / "train"
    np.save(place / "attrs.npy", np.full((12, 2), 10, dtype=np.uint8))
    with pytest.raises(DatasetDamaged, match=r"label 10 of row 0 of .*attrs\.npy is out of range"):
        load_training(NPY, tmp_path)
    np.save(place / "images.npy", np.zeros((11, 32, 32, 3), dtype=np.uint8))
    with pytest.raises(DatasetDamaged, match=r"images\.npy must hold uint8 \(12, 32, 32, 3\), has .* \(11"):
        load_training(NPY, tmp_path)
    (place / "attrs.npy").unlink()
    with pytest.raises(DatasetMissing, match=r"lacks train/attrs\.npy\. Get it from .*LfF"):
        check_available(NPY, tmp_path)
