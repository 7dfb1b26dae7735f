"""ImageNet and ImageNet-100: classes, both layouts of the validation images, and WordNet's levels."""

from pathlib import Path

import numpy as np
import pytest
import torch
from encoded_files import encoded, pixels
from listed_archives import write_imagenet

from contrasweep.data import (
    DatasetDamaged,
    DatasetMissing,
    check_available,
    dataset_spec,
    load_test,
    load_training,
    scored_dataset,
)
from contrasweep.data.sources import imagenet
from contrasweep.data.sources.imagenet_classes import CL_INFONCE, CMC
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.resolve import check_experiment, resolve

ONE, TWO, THREE = "n00000011", "n00000012", "n00000013"
TREE = f"n0 n1\nn0 {THREE}\nn1 {ONE}\nn1 {TWO}\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three classes; two of them are in the list."""
    for name, value in {"ALL_CLASSES": 3, "ALL_TRAIN": 6, "ALL_TEST": 3, "TEST_OF_A_CLASS": 1}.items():
        monkeypatch.setattr(imagenet, name, value)
    monkeypatch.setattr(imagenet, "LISTS", {"cl-infonce": (ONE, THREE)})
    monkeypatch.setattr(imagenet, "TRAIN_SIZES", {"cl-infonce": 4})
    write_imagenet(tmp_path, {TWO: 2, ONE: 3, THREE: 1}, {ONE: 1, TWO: 1, THREE: 1})
    return tmp_path


def _flatten(root: Path) -> list[str]:
    """Put all validation images into one folder, as in their archive; return their classes in order."""
    place = root / "imagenet/val"
    files = sorted(place.rglob("*.JPEG"), key=lambda file: file.name, reverse=True)
    classes = [file.parent.name for file in files]
    for number, file in enumerate(files, start=1):
        file.rename(place / f"ILSVRC2012_val_{number:08d}.JPEG")
        if not list(file.parent.iterdir()):
            file.parent.rmdir()
    return classes


def test_all_classes_are_numbered_by_name(root: Path) -> None:
    check_available("imagenet1k", root)
    train, test = load_training("imagenet1k:size=8", root).train, load_test("imagenet1k:size=8", root)
    assert train.labels.tolist() == [0, 0, 0, 1, 1, 2]
    assert test.labels.tolist() == [0, 1, 2]
    assert train.images.shape == (6, 3, 8, 8)
    assert len(torch.unique(train.pixels.flatten(1), dim=0)) == 6


def test_a_list_has_its_classes_alone(root: Path) -> None:
    check_available("imagenet100", root)
    assert load_training("imagenet100:size=8", root).train.labels.tolist() == [0, 0, 0, 1]
    assert load_test("imagenet100:size=8", root).labels.tolist() == [0, 1]
    (root / "mine.txt").write_text(f"{TWO}\n{ONE} a bird\n")
    assert load_training("imagenet100:size=8,classes=mine.txt", root).train.labels.tolist() == [0, 0, 0, 1, 1]
    with pytest.raises(DatasetMissing, match=r"classes of dataset 'imagenet100': .*yours\.txt is not a file"):
        check_available("imagenet100:classes=yours.txt", root)


@pytest.mark.parametrize("published", ["synset labels", "solution", "devkit"])
def test_validation_images_in_one_folder_need_a_file_of_their_classes(root: Path, published: str) -> None:
    by_class = load_test("imagenet1k:size=8", root)
    classes, place = _flatten(root), root / "imagenet"
    with pytest.raises(DatasetMissing, match="val has no folder for each class, and none of the files"):
        check_available("imagenet1k", root)
    if published == "synset labels":
        (place / "imagenet_2012_validation_synset_labels.txt").write_text("\n".join(classes) + "\n")
    elif published == "solution":
        lines = [f"ILSVRC2012_val_{n:08d},{name} 1 2 3 4 " for n, name in enumerate(classes, start=1)]
        # Kaggle's rows are in no order.
        text = "\n".join(["ImageId,PredictionString", *reversed(lines)]) + "\n"
        (place / "LOC_val_solution.csv").write_text(text)
    else:
        devkit = place / "ILSVRC2012_devkit_t12/data"
        _write_devkit(devkit, classes)
        meta = (devkit / "meta.mat").read_bytes()
        (devkit / "meta.mat").write_bytes(meta[:200])
        with pytest.raises(DatasetDamaged, match=r"meta\.mat cannot be read as a MATLAB file"):
            check_available("imagenet1k", root)
        (devkit / "meta.mat").write_bytes(meta)
    check_available("imagenet1k", root)
    flat = load_test("imagenet1k:size=8", root)
    assert flat.labels.tolist() == by_class.labels.tolist()
    assert torch.equal(flat.pixels, by_class.pixels)
    assert load_test("imagenet100:size=8", root).labels.tolist() == [0, 1]


def _write_devkit(place: Path, classes: list[str]) -> None:
    from scipy.io import savemat

    place.mkdir(parents=True)
    number = {TWO: 1, THREE: 2, ONE: 3, "n1": 4}
    kind = [("ILSVRC2012_ID", "O"), ("WNID", "O"), ("num_children", "O")]
    rows = [(np.uint16(own), name, np.uint8(name == "n1")) for name, own in number.items()]
    savemat(place / "meta.mat", {"synsets": np.array(rows, dtype=kind)[:, None]})
    numbers = "".join(f"{number[name]}\n" for name in classes)
    (place / "ILSVRC2012_validation_ground_truth.txt").write_text(numbers)


def test_a_level_of_wordnet_is_the_condition(root: Path) -> None:
    name = "imagenet1k:size=8,hierarchy=tree.txt,level=2"
    with pytest.raises(DatasetMissing, match=r"hierarchy=tree\.txt: .*tree\.txt is not there.*wordnet\.is_a"):
        check_available(name, root)
    (root / "tree.txt").write_text(TREE)
    train = load_training(name, root).train
    assert train.condition is not None
    assert train.condition.tolist() == [[1, 0]] * 5 + [[0, 1]]
    assert dataset_spec(name, root).condition_dim == 2
    assert dataset_spec("imagenet1k", root).condition_dim is None
    (root / "tree.txt").write_text(TREE + f"n0 {ONE}\n")
    with pytest.raises(ValueError, match="has several parents"):
        load_training(name, root)
    assert load_training(f"{name},parents=first", root).train.condition is not None


OWN_LIST = "imagenet100:classes=own.txt"
GIVEN_FILES = {
    "imagenet1k:hierarchy=own.txt,level=2": (TREE, TREE.replace(f"n1 {TWO}", f"n0 {TWO}")),
    "imagenet100:hierarchy=own.txt,level=2": (TREE, TREE.replace(f"n1 {ONE}", f"n0 {ONE}")),
    OWN_LIST: (f"{ONE}\n{TWO}\n", f"{TWO}\n{THREE}\n"),
    f"{OWN_LIST},hierarchy=tree.txt,level=2": (f"{ONE}\n{TWO}\n", f"{ONE}\n{THREE}\n"),
    f"{OWN_LIST},condition=clip.npy": (f"{ONE}\n{THREE}\n", f"{ONE}\n{THREE} a fish\n"),
}
"""Datasets with a file of the user, and two contents of `own.txt`."""


@pytest.mark.parametrize("name", GIVEN_FILES)
def test_an_experiment_does_not_go_on_with_another_file_of_classes_or_of_their_hierarchy(
    root: Path, name: str
) -> None:
    (root / "tree.txt").write_text(TREE)
    np.save(root / "clip.npy", np.zeros((4, 2)))
    before, after = GIVEN_FILES[name]
    (root / "own.txt").write_text(before)
    made = resolve("infonce", name, {"batch_size": 2, "validation.fraction": 0.5}, data_root=root)
    check_experiment(made, root)
    (root / "own.txt").write_text(after)
    with pytest.raises(InputError, match="a file of its options have changed"):
        check_experiment(made, root)
    assert dataset_spec(name.partition(":")[0], root).fingerprint == "", "it is as published"


@pytest.mark.parametrize("option", ["condition=clip.npy", "hierarchy=tree.txt,level=2"])
def test_images_and_labels_of_both_splits_are_the_same_with_any_condition(root: Path, option: str) -> None:
    (root / "tree.txt").write_text(TREE)
    np.save(root / "clip.npy", np.zeros((6, 2)))
    name = f"imagenet1k:size=8,{option}"
    bare = scored_dataset(name)
    assert bare == "imagenet1k:size=8"
    for one, other in (
        (load_training(name, root).train, load_training(bare, root).train),
        (load_test(name, root), load_test(bare, root)),
    ):
        assert torch.equal(one.pixels, other.pixels)
        assert torch.equal(one.labels, other.labels)


@pytest.mark.parametrize("name", ["imagenet1k:size=8", "imagenet100:size=8"])
def test_a_condition_has_a_row_for_each_training_image_in_the_order_of_their_paths(
    root: Path, name: str
) -> None:
    """Feature 0 of a row is the first level of its image, which this test writes into the images."""
    classes = (ONE, TWO, THREE) if name.startswith("imagenet1k") else (ONE, THREE)
    files = sorted(file for own in classes for file in (root / "imagenet/train" / own).iterdir())
    for number, file in enumerate(files):
        levels = pixels(number, 8, 8)
        levels[0, 0, 0] = 10 * number
        file.write_bytes(encoded(levels))
    np.save(root / "clip.npy", np.array([[10.0 * n, 0.5] for n in range(len(files))]))
    conditioned = f"{name},condition=clip.npy"
    check_available(conditioned, root)
    spec = dataset_spec(conditioned, root)
    assert (spec.condition_dim, spec.condition_name) == (2, "the rows of clip.npy")
    cut = load_training(conditioned, root, validation_fraction=0.34)
    assert cut.validation is not None
    for part in (cut.train, cut.validation):
        assert part.condition is not None
        assert part.condition[:, 0].tolist() == part.pixels[:, 0, 0, 0].tolist()
    assert load_test(conditioned, root).condition is None


def test_a_damaged_image_that_is_left_out_takes_its_condition_with_it(root: Path) -> None:
    (root / "imagenet/train" / ONE / f"{ONE}_1.JPEG").write_bytes(b"half")
    np.save(root / "clip.npy", np.arange(4.0))
    train = load_training("imagenet100:size=8,corrupt=skip,condition=clip.npy", root).train
    assert train.condition is not None
    assert train.condition[:, 0].tolist() == [0, 2, 3]


def test_a_condition_with_other_rows_or_beside_a_hierarchy_is_refused(root: Path) -> None:
    np.save(root / "clip.npy", np.zeros((5, 2)))
    with pytest.raises(DatasetDamaged, match=r"clip\.npy holds a condition for 5 images.* are 6 training"):
        check_available("imagenet1k:condition=clip.npy", root)
    with pytest.raises(DatasetMissing, match=r"condition=clap\.npy: .* is not there"):
        check_available("imagenet100:condition=clap.npy", root)
    (root / "tree.txt").write_text(TREE)
    with pytest.raises(ValueError, match="condition and hierarchy both set the condition"):
        dataset_spec("imagenet1k:condition=clip.npy,hierarchy=tree.txt,level=2", root)


def test_both_published_lists_have_a_hundred_classes() -> None:
    for classes in (CL_INFONCE, CMC):
        assert len(set(classes)) == 100
        assert list(classes) == sorted(classes)
    assert len(set(CL_INFONCE) & set(CMC)) == 3


def test_the_facts_are_known_without_the_files(tmp_path: Path) -> None:
    sizes = {
        "imagenet1k": (1_281_167, 50_000, 1_000),
        "imagenet100": (128_783, 5_000, 100),
        "imagenet100:classes=cmc": (126_689, 5_000, 100),
    }
    for name, expected in sizes.items():
        spec = dataset_spec(name, tmp_path)
        assert (spec.train_size, spec.test_size, spec.classes) == expected


def test_missing_files_are_named(root: Path, tmp_path: Path) -> None:
    with pytest.raises(DatasetMissing, match=r"imagenet/train does not exist\. Get it from https"):
        check_available("imagenet100", tmp_path / "nowhere")
    next((root / "imagenet/train" / ONE).iterdir()).unlink()
    with pytest.raises(DatasetMissing, match="train holds 3 images of its classes, expected 4"):
        check_available("imagenet100", root)
    (root / "imagenet/train" / THREE / f"{THREE}_0.JPEG").unlink()
    with pytest.raises(DatasetMissing, match=f"no image of 1 of 2 classes, the first is {THREE}"):
        check_available("imagenet100", root)
    (root / "imagenet/train" / THREE).rmdir()
    with pytest.raises(DatasetMissing, match="has folders of 2 classes, expected 3"):
        check_available("imagenet1k", root)


def test_a_short_file_of_classes_is_named(root: Path) -> None:
    _flatten(root)
    (root / "imagenet/imagenet_2012_validation_synset_labels.txt").write_text(f"{ONE}\n")
    with pytest.raises(DatasetDamaged, match=r"synset_labels\.txt has the classes of 1 images, expected 3"):
        load_test("imagenet1k", root)
