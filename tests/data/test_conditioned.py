"""A condition from a file for any images: rows stay with their images, and wrong files are refused."""

import pickle
from pathlib import Path

import numpy as np
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
from contrasweep.data.sources.cifar import CIFAR10_LAYOUT, cifar_family

TREE = "image-folder:path=tree,size=8"
HUB = "hub-parquet:path=hub"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Six training images and a test image, as a tree and in Parquet; feature 0 is the first level."""
    images = [pixels(seed) for seed in range(7)]
    write_parquet(tmp_path / "hub/train-0.parquet", [encoded(one) for one in images[:6]], [0, 1] * 3)
    write_parquet(tmp_path / "hub/test-0.parquet", [encoded(images[6])], [0])
    for row, image in enumerate(images):
        place = tmp_path / "tree" / ("test" if row == 6 else "train") / f"class{row // 3 % 2}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{row}.png").write_bytes(encoded(image))
    features = np.array([[float(image[0, 0, 0]), row] for row, image in enumerate(images[:6])])
    np.save(tmp_path / "clip.npy", features)
    return tmp_path


@pytest.mark.parametrize("name", [TREE, HUB])
def test_the_rows_belong_to_the_training_images(root: Path, name: str) -> None:
    conditioned = f"{name},condition=clip.npy"
    check_available(conditioned, root)
    spec = dataset_spec(conditioned, root)
    assert (spec.name, spec.condition_dim, spec.condition_name) == (
        conditioned,
        2,
        "the rows of clip.npy",
    )
    assert dataset_spec(name, root).condition_dim is None
    cut = load_training(conditioned, root, validation_fraction=1 / 3)
    assert cut.validation is not None
    for part in (cut.train, cut.validation):
        assert part.condition is not None
        assert part.condition[:, 0].tolist() == part.pixels[:, 0, 0, 0].tolist()
    assert load_test(conditioned, root).condition is None


@pytest.mark.parametrize("name", [TREE, HUB])
def test_images_left_out_take_their_rows_with_them(root: Path, name: str) -> None:
    first = encoded(pixels(0))[:70]
    (root / "tree/train/class0/0.png").write_bytes(first)
    whole = [first, *(encoded(pixels(seed)) for seed in range(1, 6))]
    write_parquet(root / "hub/train-0.parquet", whole, [0, 1] * 3)
    train = load_training(f"{name},corrupt=skip,condition=clip.npy", root).train
    assert train.condition is not None
    assert train.condition[:, 1].tolist() == [1, 2, 3, 4, 5]
    assert train.condition[:, 0].tolist() == train.pixels[:, 0, 0, 0].tolist()


def test_of_an_imbalanced_set_the_rows_are_those_that_stay(root: Path) -> None:
    train = load_training(f"{HUB},imbalance=linear,condition=clip.npy", root).train
    assert train.condition is not None
    assert len(train) == 4
    assert train.condition[:, 0].tolist() == train.pixels[:, 0, 0, 0].tolist()


def test_a_file_with_other_rows_is_refused_before_any_image_is_read(root: Path) -> None:
    np.save(root / "short.npy", np.zeros((5, 2)))
    for use in (dataset_spec, check_available):
        with pytest.raises(DatasetDamaged, match=r"short\.npy holds a condition for 5 images.* are 6 train"):
            use(f"{TREE},condition=short.npy", root)
    # Nothing of CIFAR-10 is there, nor needed to tell.
    with pytest.raises(DatasetDamaged, match=r"clip\.npy holds a condition for 6 images.* are 50,000 train"):
        dataset_spec("cifar10:condition=clip.npy", root)


def test_wrong_conditions_are_refused(root: Path) -> None:
    (root / "broken.npy").write_bytes(b"nothing of the kind")
    for file, message in (("broken.npy", "not an array"), ("tree/test/class0/6.png", "is read from .npy")):
        with pytest.raises(DatasetDamaged, match=message):
            dataset_spec(f"{TREE},condition={file}", root)
    with pytest.raises(DatasetMissing, match=r"condition=clap\.npy: .*clap\.npy is not there.*--data-root"):
        dataset_spec(f"{TREE},condition=clap.npy", root)
    np.save(root / "nan.npy", np.full((6, 1), np.nan))
    with pytest.raises(DatasetDamaged, match=r"nan\.npy: 6 rows hold NaN"):
        load_training(f"{TREE},condition=nan.npy", root)


def test_cifar_takes_one_too(tmp_path: Path) -> None:
    folder = tmp_path / CIFAR10_LAYOUT.folder
    folder.mkdir()
    for number, file in enumerate((*CIFAR10_LAYOUT.train, *CIFAR10_LAYOUT.test)):
        batch = {"data": np.full((2, 3072), number, dtype=np.uint8), "labels": [0, 1]}
        (folder / file).write_bytes(pickle.dumps(batch, protocol=2))
    np.save(tmp_path / "clip.npy", np.repeat(np.arange(5), 2))
    family = cifar_family(CIFAR10_LAYOUT)
    options = family.parse("condition=clip.npy")
    train = family.read(tmp_path, "train", options)
    assert train.condition is not None
    assert torch.equal(train.condition[:, 0], train.pixels[:, 0, 0, 0].float())
    assert family.read(tmp_path, "test", options).condition is None


@pytest.mark.parametrize("name", [TREE, HUB])
def test_values_that_are_not_finite_are_told_before_any_work(root: Path, name: str) -> None:
    features = np.load(root / "clip.npy")
    features[3, 0] = np.nan
    np.save(root / "holes.npy", features)
    with pytest.raises(DatasetDamaged, match=r"1 rows hold NaN, Inf .*the first is row 3"):
        dataset_spec(f"{name},condition=holes.npy", root)
