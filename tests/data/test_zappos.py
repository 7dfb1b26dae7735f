"""UT-Zappos50K: kinds, attributes and the published split, read from the layout of the archives."""

from pathlib import Path

import numpy as np
import pytest
import torch
from listed_archives import write_zappos, write_zappos_split

from contrasweep.data import (
    DatasetDamaged,
    DatasetMissing,
    check_available,
    dataset_spec,
    load_test,
    load_training,
)
from contrasweep.data.sources import zappos

PATHS = [
    "Shoes/Clogs and Mules/Neil M./1.11.jpg",
    "Boots/Ankle/Keen/2.22.jpg",
    "Shoes/Clogs and Mules/Keen/3.33.jpg",
    "Boots/Ankle/L.A.M.B./4.44.jpg",
    "Boots/Ankle/Keen/5.55.jpg",
]
ATTRIBUTES = np.array([[1, 0, 0], [0, 1, 1], [0, 0, 1], [1, 1, 1], [0, 0, 0]])
TRAIN, TEST = [PATHS[row] for row in (3, 0, 2)], [PATHS[row] for row in (4, 1)]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five shoes of two kinds with three attributes."""
    for name, value in {"CLASSES": 2, "ATTRIBUTES": 3, "SIZES": {"train": 3, "test": 2}}.items():
        monkeypatch.setattr(zappos, name, value)
    monkeypatch.setattr(zappos, "ZAPPOS_FILES", {})
    write_zappos(tmp_path, PATHS, ATTRIBUTES)
    write_zappos_split(tmp_path, TRAIN, TEST)
    return tmp_path


def test_the_published_split_has_its_images_kinds_and_attributes(root: Path) -> None:
    check_available("ut-zappos50k", root)
    train = load_training("ut-zappos50k:size=8", root).train
    test = load_test("ut-zappos50k:size=8", root)
    assert train.condition is not None
    assert test.condition is not None
    # Boots/Ankle is 0, Shoes/Clogs and Mules 1; the kinds' own columns are no attributes.
    assert train.labels.tolist() == [1, 1, 0]
    assert train.condition.tolist() == ATTRIBUTES[[0, 2, 3]].tolist()
    assert test.labels.tolist() == [0, 0]
    assert test.condition.tolist() == ATTRIBUTES[[1, 4]].tolist()
    assert train.images.shape == (3, 3, 8, 8)


def test_a_random_split_needs_no_list_and_parts_all_images(root: Path) -> None:
    for file in (root / "attributes/UT-zappos50K").iterdir():
        file.unlink()
    name = "ut-zappos50k:size=8,split=random"
    check_available(name, root)
    train, test = load_training(name, root).train, load_test(name, root)
    assert (len(train), len(test)) == (3, 2)
    together = torch.cat([train.pixels, test.pixels]).flatten(1)
    assert len(torch.unique(together, dim=0)) == 5
    with pytest.raises(DatasetMissing, match=r"lacks meta_data_train\.csv, meta_data_val\.csv"):
        check_available("ut-zappos50k", root)


def test_the_facts_are_known_without_the_files(tmp_path: Path) -> None:
    spec = dataset_spec("ut-zappos50k", tmp_path)
    assert (spec.train_size, spec.test_size, spec.classes, spec.condition_dim) == (35_017, 15_008, 21, 126)


def test_missing_and_damaged_files_are_named(root: Path, tmp_path: Path) -> None:
    with pytest.raises(DatasetMissing, match=r"ut-zap50k-images-square does not exist\. Get it from https"):
        check_available("ut-zappos50k", tmp_path / "nowhere")
    table = root / "ut-zap50k-data/meta-data-bin.csv"
    published = table.read_text()
    table.write_text(published.replace("2-22", "3-33x").replace("3-33,", "2-22,"))
    with pytest.raises(DatasetDamaged, match=r"do not belong together: 2 rows differ, '3-33x' beside 'Boots"):
        load_test("ut-zappos50k", root)
    table.write_text(published.replace("Material.2", "Category.Slippers"))
    with pytest.raises(DatasetDamaged, match="has 2 columns of attributes, expected 3"):
        load_test("ut-zappos50k", root)
    table.write_text(published)
    listed = root / "attributes/UT-zappos50K/meta_data_val.csv"
    listed.write_text(listed.read_text().replace("5.55", "6.66"))
    with pytest.raises(DatasetDamaged, match=r"lacks 'Boots/Ankle/Keen/6\.66\.jpg'"):
        load_test("ut-zappos50k", root)
    paths = root / "ut-zap50k-data/image-path.mat"
    whole = paths.read_bytes()
    paths.write_bytes(whole[:200])
    with pytest.raises(DatasetDamaged, match=r"image-path\.mat cannot be read as a MATLAB file"):
        load_test("ut-zappos50k", root)
    paths.write_bytes(whole)
    (root / "ut-zap50k-images-square/Boots/Ankle/Keen/2.22.jpg").unlink()
    with pytest.raises(DatasetMissing, match="1 of its 5 images are not there"):
        check_available("ut-zappos50k", root)
