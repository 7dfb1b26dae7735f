"""9-class ImageNet: the published groups, with images from the folders of ImageNet and ImageNet-A."""

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from imagenet_tree import write_imagenet9, write_textures

from contrasweep.data import (
    DatasetDamaged,
    DatasetMissing,
    StreamedImages,
    check_available,
    dataset_spec,
    inspect_dataset,
    load_test,
    load_training,
)
from contrasweep.data.sources import imagenet9
from contrasweep.data.sources.imagenet9 import GROUPS, IN_IMAGENET_A, LABEL_OF

NAME = "imagenet9:size=8"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    write_imagenet9(root)
    return root


@pytest.fixture
def root(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(imagenet9, "TRAIN_IMAGES_OF_A_CLASS", (2, 4))
    monkeypatch.setattr(imagenet9, "VAL_IMAGES_OF_A_CLASS", 1)
    return Path(shutil.copytree(written, tmp_path / "data"))


def test_the_groups_are_those_of_rebias() -> None:
    assert [len(group) for group in GROUPS.values()] == [5, 5, 3, 5, 5, 5, 5, 4, 5]
    assert len(LABEL_OF) == 42
    named = {"n02085620": "dog", "n02123045": "cat", "n01644373": "frog", "n02206856": "insect"}
    assert all(list(GROUPS)[LABEL_OF[wnid]] == group for wnid, group in named.items())
    # ImageNet's classes are numbered in the order of their WordNet numbers, and so are these within a group.
    assert all(list(group) == sorted(group) for group in GROUPS.values())


def test_images_are_read_by_group_and_no_other_class_is(root: Path) -> None:
    check_available(NAME, root)
    spec = dataset_spec(NAME, root)
    assert (spec.train_size, spec.test_size, spec.classes) == (84, 42, 9)
    train, test = load_training(NAME, root, placement="stream").train, load_test(NAME, root)
    assert isinstance(train.images, StreamedImages)
    for images in (train, test):
        assert images.labels.tolist() == images.pixels[:, 0, 0, 0].tolist()
    assert train.pixels[:, 1, 0, 0].tolist() == sorted([*range(42)] * 2)
    assert len(inspect_dataset(NAME, root, every_image=True).splits) == 2


def test_the_test_can_be_imagenet_a(root: Path) -> None:
    name = f"{NAME},test=imagenet-a"
    test = load_test(name, root)
    assert test.labels.tolist() == [LABEL_OF[wnid] for wnid in sorted(IN_IMAGENET_A)]
    assert dataset_spec(name, root).test_size == 21
    shutil.rmtree(root / "imagenet-a")
    with pytest.raises(
        DatasetMissing, match=r"imagenet-a does not exist\. Get it from .*natural-adv-examples"
    ):
        check_available(name, root)
    check_available(NAME, root)


def test_the_training_images_can_be_others_of_the_same_classes(root: Path) -> None:
    name = f"{NAME},train=stylised/train"
    with pytest.raises(DatasetMissing, match=r"stylised/train does not exist"):
        check_available(name, root)
    shutil.move(root / "imagenet/train", root / "stylised/train")
    assert (len(load_training(name, root).train), len(load_test(name, root))) == (84, 42)
    with pytest.raises(DatasetMissing, match=r"imagenet/train does not exist"):
        check_available(NAME, root)


def test_imagenet_a_has_21_of_the_classes_and_no_crab(root: Path) -> None:
    of_each = Counter(LABEL_OF[wnid] for wnid in IN_IMAGENET_A)
    assert [of_each[label] for label in range(9)] == [5, 1, 1, 1, 5, 2, 1, 0, 5]
    name = f"{NAME},test=imagenet-a"
    shutil.rmtree(root / "imagenet-a/n02123394")
    with pytest.raises(DatasetMissing, match=r"imagenet-a lacks the classes n02123394\. Get it from"):
        check_available(name, root)


def test_all_of_imagenet_a_must_be_all_of_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"{NAME},test=imagenet-a"
    monkeypatch.setattr(imagenet9, "A_CLASSES", 22)
    monkeypatch.setattr(imagenet9, "A_IMAGES", 22)
    check_available(name, root)
    (root / "imagenet-a/n01498041/0.jpg").unlink()
    with pytest.raises(
        DatasetMissing, match=r"imagenet-a holds 21 images of 22 classes, ImageNet-A has 22\. Get it from"
    ):
        check_available(name, root)


def test_textures_are_those_of_the_images_whatever_the_order_of_the_table(root: Path) -> None:
    write_textures(root)
    file = root / "9class_imagenet_val.csv"
    header, *rows = file.read_text().splitlines()
    file.write_text("\n".join([header, *reversed(rows), "n99999999/of_no_class.JPEG,dog,0,0,0"]) + "\n")
    name = f"{NAME},textures=9class_imagenet_val.csv"
    check_available(name, root)
    assert (dataset_spec(name, root).groupings, dataset_spec(NAME, root).groupings) == (3, 0)
    test = load_test(name, root)
    assert test.groupings is not None
    # Test images are in the order of their classes' names, as the numbers of the table's writer.
    assert test.groupings.tolist() == [[n % 2, n % 3, 8] for n in range(42)]
    assert load_training(name, root).train.groupings is None
    assert load_test(NAME, root).groupings is None


def test_a_table_of_textures_that_is_not_as_published_is_refused(root: Path) -> None:
    name = f"{NAME},textures=9class_imagenet_val.csv"
    with pytest.raises(DatasetMissing, match=r"9class_imagenet_val\.csv is not there.*clovaai/rebias"):
        check_available(name, root)
    write_textures(root)
    with pytest.raises(ValueError, match="give test=val with them"):
        dataset_spec(f"{name},test=imagenet-a", root)
    file = root / "9class_imagenet_val.csv"
    whole = file.read_text()
    for text, message in (
        (whole.rstrip().rpartition("\n")[0] + "\n", "lacks the rows of 1 of 42 images: 'n02655020/"),
        (whole.replace(",8\n", ",9\n", 1), "a cluster is a number from 0 to 8, not '9'"),
        (whole.replace("cluster3", "klaster3"), "unknown column 'cluster3'"),
    ):
        file.write_text(text)
        with pytest.raises(DatasetDamaged, match=message):
            check_available(name, root)


def test_another_table_of_textures_is_another_dataset_also_beside_bias_features(root: Path) -> None:
    write_textures(root)
    np.save(root / "bagnet.npy", np.zeros((84, 3)))
    table = f"{NAME},textures=9class_imagenet_val.csv"
    names = (NAME, f"{NAME},condition=bagnet.npy", table, f"{table},condition=bagnet.npy")
    before = [dataset_spec(name, root).fingerprint for name in names]
    assert len(set(before)) == 4
    file = root / "9class_imagenet_val.csv"
    file.write_text(file.read_text().replace(",8\n", ",7\n", 1))
    after = [dataset_spec(name, root).fingerprint for name in names]
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, True, False, False]


def test_bias_features_are_the_rows_of_a_file_in_the_order_of_the_paths(root: Path) -> None:
    np.save(root / "bagnet.npy", np.repeat(np.arange(42), 2)[:, None] * np.ones((1, 3)))
    train = load_training(f"{NAME},condition=bagnet.npy", root).train
    assert train.condition is not None
    assert train.condition.shape == (84, 3)
    assert torch.equal(train.condition[:, 0], train.pixels[:, 1, 0, 0].float())
    np.save(root / "bagnet.npy", np.zeros((42, 3)))
    with pytest.raises(DatasetDamaged, match="a condition for 42 images, but there are 84 training images"):
        dataset_spec(f"{NAME},condition=bagnet.npy", root)


def test_it_is_described_without_its_files(tmp_path: Path) -> None:
    spec = dataset_spec("imagenet9", tmp_path)
    assert (spec.train_size, spec.test_size, spec.image_size, spec.view_size) == (54_600, 2_100, 256, 224)
    with pytest.raises(DatasetMissing, match=r"imagenet/train does not exist\. Get it from .*image-net"):
        check_available("imagenet9", tmp_path)


@pytest.mark.parametrize(
    ("lost", "message"),
    [
        ("imagenet/val", r"imagenet/val does not exist\. .*--data-root"),
        ("imagenet/train/n02206856", "train lacks the classes n02206856"),
        ("imagenet/train/n02085620/n02085620_1.JPEG", r"n02085620 holds 1 images, ImageNet has 2 to 4 of a"),
        ("imagenet/val/n02085620/n02085620_2.JPEG", r"n02085620 holds 0 images, ImageNet has 1 of a class"),
    ],
)
def test_lost_files_are_named(root: Path, lost: str, message: str) -> None:
    place = root / lost
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    with pytest.raises(DatasetMissing, match=message):
        check_available(NAME, root)
