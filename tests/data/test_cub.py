"""CUB-200-2011: images, species, the published split and the attributes, read from the archive's layout."""

from pathlib import Path

import numpy as np
import pytest
import torch
from listed_archives import write_cub

from contrasweep.data import (
    DatasetDamaged,
    DatasetMissing,
    StreamedImages,
    check_available,
    dataset_spec,
    load_test,
    load_training,
)
from contrasweep.data.sources import cub

PRESENT = np.array([[0, 1, 1], [0, 1, 0], [0, 0, 1], [0, 0, 1], [1, 0, 0], [1, 1, 1]])
TRAINING = (1, 1, 1, 1, 0, 0)
SMALL = "cub:size=8,attributes=3"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four training images and two test images, with three attributes."""
    for name, value in {"IMAGES": 6, "TRAIN_IMAGES": 4, "CLASSES": 2, "ATTRIBUTES": 3}.items():
        monkeypatch.setattr(cub, name, value)
    write_cub(tmp_path, PRESENT, TRAINING)
    return tmp_path


def test_the_published_split_has_its_images_species_and_attributes(root: Path) -> None:
    check_available("cub", root)
    train, test = load_training(SMALL, root).train, load_test(SMALL, root)
    assert train.labels.tolist() == [0, 1, 0, 1]
    assert test.labels.tolist() == [0, 1]
    assert train.condition is not None
    assert test.condition is not None
    assert train.condition.tolist() == PRESENT[:4].tolist()
    assert test.condition.tolist() == PRESENT[4:].tolist()
    assert train.images.shape == (4, 3, 8, 8)
    assert not torch.equal(train.pixels[0], train.pixels[1])


def test_the_attributes_kept_are_ranked_by_the_training_images_alone(root: Path) -> None:
    # In training, attribute 1 is always 0, attribute 2 has two of four, attribute 3 three of four.
    kept = load_test("cub:attributes=2", root).condition
    assert kept is not None
    assert kept.tolist() == PRESENT[4:, [1, 2]].tolist()
    assert dataset_spec("cub:attributes=2", root).condition_dim == 2


def test_the_facts_are_known_without_the_files(tmp_path: Path) -> None:
    spec = dataset_spec("cub", tmp_path)
    assert (spec.train_size, spec.test_size, spec.classes) == (5_994, 5_794, 200)
    assert (spec.condition_dim, spec.image_size) == (312, 224)


def test_it_can_be_streamed(root: Path) -> None:
    streamed = load_training(SMALL, root, placement="stream").train.images
    assert isinstance(streamed, StreamedImages)
    assert torch.equal(streamed[torch.tensor([3, 0])], load_training(SMALL, root).train.pixels[[3, 0]])


def test_missing_files_are_named(root: Path, tmp_path: Path) -> None:
    with pytest.raises(DatasetMissing, match=r"nowhere/CUB_200_2011 does not exist\. Get it from https"):
        check_available("cub", tmp_path / "nowhere")
    next((root / "CUB_200_2011/images").rglob("*.jpg")).unlink()
    with pytest.raises(
        DatasetMissing, match=r"1 of its 6 images are not there, the first is .*\.jpg\. Get it"
    ):
        check_available("cub", root)
    (root / "CUB_200_2011/attributes/image_attribute_labels.txt").unlink()
    with pytest.raises(DatasetMissing, match=r"lacks attributes/image_attribute_labels\.txt"):
        check_available("cub", root)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("images.txt", "6 002", "7 002", "line 6 should be 6 and a value"),
        ("image_class_labels.txt", "2 2", "2 3", r"image 2 has '3', allowed are 1\.\.2"),
        (
            "attributes/image_attribute_labels.txt",
            "1 2 1 3",
            "1 2 2 3",
            "line 2 should be image 1, attribute 2",
        ),
        ("attributes/image_attribute_labels.txt", "6 3 1 3 12.075\n", "", "has 17 lines, 18 are needed"),
    ],
)
def test_a_damaged_table_is_named(root: Path, file: str, old: str, new: str, message: str) -> None:
    place = root / "CUB_200_2011" / file
    assert old in place.read_text()
    place.write_text(place.read_text().replace(old, new, 1))
    with pytest.raises(DatasetDamaged, match=message):
        load_training("cub", root)
