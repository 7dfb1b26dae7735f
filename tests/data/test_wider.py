"""Wider Attribute: scenes and the attributes of any person, read from the layout of the archives."""

from pathlib import Path

import pytest
from listed_archives import write_wider

from contrasweep.data import (
    DatasetDamaged,
    DatasetMissing,
    check_available,
    dataset_spec,
    load_test,
    load_training,
)
from contrasweep.data.sources import wider

NONE = [-1] * 14
UNKNOWN = [0] * 14


def _with(*present: int) -> list[int]:
    return [1 if number in present else -1 for number in range(14)]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two images of train, one of val, one of test, in three scenes; the scene numbers have gaps."""
    monkeypatch.setattr(wider, "SCENES", 3)
    monkeypatch.setattr(wider, "SIZES", {"train": 3, "test": 1})
    parade, riot, ceremony = "0--Parade/a_1.jpg", "3--Riot/b.jpg", "17--Ceremony/c.jpg"
    write_wider(
        tmp_path,
        "trainval",
        [
            (f"train/{ceremony}", 17, [_with(0, 2), _with(2, 13)]),
            (f"train/{parade}", 0, [UNKNOWN, NONE]),
            (f"val/{riot}", 3, [_with(5)]),
        ],
    )
    write_wider(tmp_path, "test", [(f"test/{riot}", 3, [NONE, _with(1)])])
    return tmp_path


def _attributes(rows: object) -> list[list[int]]:
    return [[number for number, value in enumerate(row) if value] for row in rows]  # type: ignore[attr-defined]


def test_an_image_has_the_attributes_of_any_person_and_the_scene_as_label(root: Path) -> None:
    check_available("wider-attribute", root)
    train = load_training("wider-attribute:size=8", root).train
    test = load_test("wider-attribute:size=8", root)
    assert train.condition is not None
    assert test.condition is not None
    assert _attributes(train.condition.tolist()) == [[0, 2, 13], [], [5]]
    assert _attributes(test.condition.tolist()) == [[1]]
    # Scenes 0, 3 and 17 are labels 0, 1 and 2.
    assert train.labels.tolist() == [2, 0, 1]
    assert test.labels.tolist() == [1]
    assert train.images.shape == (3, 3, 8, 8)


def test_the_annotations_may_lie_in_a_folder_of_their_own(root: Path) -> None:
    place = root / "WIDER_Attribute"
    (place / "Anno").mkdir()
    for split in ("trainval", "test"):
        name = f"wider_attribute_{split}.json"
        (place / name).rename(place / "Anno" / name)
    assert len(load_test("wider-attribute:size=8", root)) == 1
    (place / "Anno/wider_attribute_test.json").unlink()
    with pytest.raises(DatasetMissing, match=r"lacks wider_attribute_test\.json \(looked in .*Anno"):
        check_available("wider-attribute", root)


def test_the_facts_are_known_without_the_files(tmp_path: Path) -> None:
    spec = dataset_spec("wider-attribute", tmp_path)
    assert (spec.train_size, spec.test_size, spec.classes, spec.condition_dim) == (6_871, 6_918, 30, 14)


def test_missing_and_damaged_files_are_named(root: Path, tmp_path: Path) -> None:
    with pytest.raises(DatasetMissing, match=r"WIDER_Attribute does not exist\. Get it from http"):
        check_available("wider-attribute", tmp_path / "nowhere")
    file = root / "WIDER_Attribute/wider_attribute_test.json"
    published = file.read_text()
    file.write_text(published.replace('"scene_id": 3', '"scene_id": 4'))
    with pytest.raises(DatasetDamaged, match="has images of scene 4"):
        load_test("wider-attribute", root)
    file.write_text(published.replace("[-1, ", "[", 1))
    with pytest.raises(DatasetDamaged, match="a person has 14 attributes"):
        load_test("wider-attribute", root)
    (root / "WIDER_Attribute/Image/val/3--Riot/b.jpg").unlink()
    file.write_text(published)
    with pytest.raises(DatasetMissing, match=r"1 of its 4 images are not there, the first is .*val"):
        check_available("wider-attribute", root)
