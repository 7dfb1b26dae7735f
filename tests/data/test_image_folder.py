"""Trees of image files: a folder for each class, resized to one square size."""

import errno
import logging
import os
import shutil
from pathlib import Path

import pytest
import torch
from encoded_files import encoded, pixels

from contrasweep.data import (
    DatasetDamaged,
    DatasetMissing,
    DatasetSpec,
    StreamedImages,
    check_available,
    cut_other_test_images,
    dataset_spec,
    load_test,
    load_training,
)
from contrasweep.data.encoded import FileImages
from contrasweep.data.listing import files_below

NAME = "image-folder:path=tree,size=8"


def _tensor(seed: int) -> torch.Tensor:
    return torch.from_numpy(pixels(seed)).permute(2, 0, 1)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Three training images in two classes, one image a folder deeper, and one validation image."""
    for seed, file in enumerate(
        ["train/cat/b.png", "train/cat/aa/z.png", "train/ant/c.PNG", "val/cat/d.png"]
    ):
        place = tmp_path / "tree" / file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(encoded(pixels(seed)))
    (tmp_path / "tree/train/cat/readme.txt").write_text("no image")
    return tmp_path


def test_an_image_that_is_a_pipe_is_refused_without_opening_it(tree: Path) -> None:
    os.mkfifo(tree / "tree/train/ant/a.png")  # opening it would wait for a writer
    with pytest.raises(DatasetDamaged, match=r"a\.png: is a pipe"):
        _ = load_training(NAME, tree).train.pixels


def test_a_test_split_that_is_a_link_to_the_training_split_is_refused(tree: Path) -> None:
    shutil.rmtree(tree / "tree/val")
    (tree / "tree/val").symlink_to("train")
    with pytest.raises(DatasetMissing, match=r"as test images: .*tree/val is a link to .*tree/train"):
        check_available(NAME, tree)


def test_classes_are_numbered_by_name_and_files_sorted(tree: Path) -> None:
    check_available(NAME, tree)
    spec = dataset_spec(NAME, tree)
    assert (spec.name, spec.class_names, spec.classes) == (NAME, ("ant", "cat"), 2)
    assert (spec.train_size, spec.test_size, spec.channels, spec.image_size) == (3, 1, 3, 8)
    train, test = load_training(NAME, tree).train, load_test(NAME, tree)
    assert train.labels.tolist() == [0, 1, 1]
    assert torch.equal(train.pixels, torch.stack([_tensor(2), _tensor(1), _tensor(0)]))
    # Of a split that lacks a class, the others keep their numbers.
    assert test.labels.tolist() == [1]
    assert torch.equal(test.pixels, _tensor(3)[None])


@pytest.mark.parametrize("name", [NAME, f"{NAME},labels=none"])
def test_hidden_files_and_folders_are_no_images(tree: Path, name: str) -> None:
    for file in (".ipynb_checkpoints/b-checkpoint.png", "aa/.thumbnails/z.png", "._b.png"):
        place = tree / "tree/train/cat" / file
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(encoded(pixels(9)))
    spec = dataset_spec(name, tree)
    assert isinstance(spec, DatasetSpec)
    assert spec.train_size == len(load_training(name, tree).train) == 3


@pytest.mark.parametrize("name", [NAME, f"{NAME},labels=none"])
def test_folders_behind_links_are_read_and_none_twice(tree: Path, name: str) -> None:
    more = tree / "elsewhere/more"
    more.mkdir(parents=True)
    (more / "e.png").write_bytes(encoded(pixels(4)))
    cat = tree / "tree/train/cat"
    (cat / "a link").symlink_to(more)
    (more / "back").symlink_to(cat)
    (cat / "a first").symlink_to(cat / "aa")
    (cat / "up").symlink_to("..")
    spec = dataset_spec(name, tree)
    assert isinstance(spec, DatasetSpec)
    assert spec.train_size == len(load_training(name, tree).train) == 4
    assert [file[-1] for file in files_below(cat, (".png",))] == ["b.png", "z.png", "e.png"]
    assert ("aa", "z.png") in files_below(cat, (".png",)), "a folder keeps its own name"


def test_images_of_any_shape_become_squares_of_the_size_asked_for(tree: Path) -> None:
    (tree / "tree/val/cat/d.png").write_bytes(encoded(pixels(3, 20, 30)))
    assert load_test("image-folder:path=tree,size=5", tree).images.shape == (1, 3, 5, 5)
    assert load_training("image-folder:path=tree,size=16,colour=grey", tree).train.images.shape == (
        3,
        1,
        16,
        16,
    )


def test_a_stream_has_the_pixels_of_the_resident_set(tree: Path) -> None:
    streamed = load_training(NAME, tree, placement="stream").train.images
    resident = load_training(NAME, tree, placement="resident").train.images
    assert isinstance(streamed, StreamedImages)
    order = torch.tensor([2, 0, 1])
    assert torch.equal(streamed[order], resident[order])


def test_a_corrupt_file_is_named_or_left_out_when_asked(tree: Path, caplog: pytest.LogCaptureFixture) -> None:
    broken = tree / "tree/train/cat/b.png"
    broken.write_bytes(broken.read_bytes()[:70])
    with pytest.raises(DatasetDamaged, match=r"corrupt image: .*train/cat/b\.png cannot be decoded"):
        load_training(NAME, tree)
    with caplog.at_level(logging.WARNING):
        train = load_training(f"{NAME},corrupt=skip", tree).train
    assert train.labels.tolist() == [0, 1]
    assert torch.equal(train.pixels, torch.stack([_tensor(2), _tensor(1)]))
    assert "1 corrupt images of 3 are left out" in caplog.text
    assert "b.png" in caplog.text


def test_a_broken_link_is_named_or_left_out_when_asked(tree: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tree / "tree/train/cat/b.png").unlink()
    (tree / "tree/train/cat/b.png").symlink_to(tree / "nowhere.png")
    check_available(NAME, tree)
    assert dataset_spec(NAME, tree).channels == 3
    with pytest.raises(DatasetDamaged, match=r"train/cat/b\.png: there is no such file"):
        load_training(NAME, tree)
    assert load_training(f"{NAME},corrupt=skip", tree).train.labels.tolist() == [0, 1]
    assert "1 corrupt images of 3 are left out" in caplog.text


def test_where_all_images_are_broken_links_one_is_named(tree: Path) -> None:
    for name in ("cat/b.png", "cat/aa/z.png", "ant/c.PNG"):
        (tree / "tree/train" / name).unlink()
        (tree / "tree/train" / name).symlink_to("nowhere.png")
    with pytest.raises(DatasetDamaged, match=r"\.png: there is no such file"):
        dataset_spec(NAME, tree)


def test_missing_files_are_named(tree: Path) -> None:
    with pytest.raises(DatasetMissing, match=r"nowhere does not exist\. path= holds a folder"):
        check_available("image-folder:path=nowhere,size=8", tree)
    (tree / "half/test").mkdir(parents=True)
    with pytest.raises(DatasetMissing, match=r"half has no folder train\. path= holds a folder"):
        check_available("image-folder:path=half,size=8", tree)
    (tree / "tree/train/bee").mkdir()
    with pytest.raises(DatasetMissing, match="train has no image of 'bee': put images there"):
        check_available(NAME, tree)
    (tree / "tree/train/bee").rmdir()
    (tree / "tree/val/cat/d.png").unlink()
    with pytest.raises(DatasetMissing, match="val holds no image"):
        check_available(NAME, tree)
    with pytest.raises(ValueError, match=r"image-folder needs size: image-folder:path=tree,size=\.\.\."):
        check_available("image-folder:path=tree", tree)
    with pytest.raises(ValueError, match=r"needs path and size: image-folder:colour=grey,path=\.\.\.,size="):
        check_available("image-folder:colour=grey", tree)


def test_a_folder_that_is_missing_was_looked_for_under_the_data_root(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree)
    looked = f"path=tree is looked for under the data root, and {tree}/data/tree does not exist"
    here = f"but {tree}/tree in the working directory does: give path={tree}/tree\\."
    for name in (NAME, "hub-parquet:path=tree"):
        with pytest.raises(DatasetMissing, match=f"not found: {looked}, {here}"):
            check_available(name, tree / "data")
    (tree / "file").touch()
    with pytest.raises(DatasetMissing, match=rf"not found: {tree}/file is not a folder"):
        check_available(f"image-folder:path={tree}/file,size=8")


def test_a_test_class_that_was_never_trained_is_refused(tree: Path) -> None:
    (tree / "tree/val/cta").mkdir()
    (tree / "tree/val/cta/e.png").write_bytes(encoded(pixels(9)))
    for use in (check_available, load_test):
        with pytest.raises(DatasetDamaged, match=r"in its test split 'cta'\. Did you mean 'cat'"):
            use(NAME, tree)


@pytest.mark.parametrize(
    ("train", "test"), [("Train", "Test"), ("training", "valid"), ("TRAIN", "validation"), ("train", "Val")]
)
def test_folders_of_splits_may_have_other_usual_names(tree: Path, train: str, test: str) -> None:
    (tree / "tree/train").rename(tree / "tree/moved")
    (tree / "tree/moved").rename(tree / "tree" / train)
    (tree / "tree/val").rename(tree / "tree/set")
    (tree / "tree/set").rename(tree / "tree" / test)
    spec = dataset_spec(NAME, tree)
    assert (spec.class_names, spec.train_size, spec.test_size) == (("ant", "cat"), 3, 1)


def test_splits_are_not_taken_for_classes(tree: Path) -> None:
    (tree / "tree/train").rename(tree / "tree/train_set")
    (tree / "tree/val").rename(tree / "tree/test_set")
    with pytest.raises(DatasetMissing, match="train_set and test_set look like splits: call them train and"):
        check_available(NAME, tree)


def test_a_folder_around_the_tree_is_no_class(tree: Path) -> None:
    (tree / "tree").rename(tree / "inner")
    (tree / "tree").mkdir()
    (tree / "inner").rename(tree / "tree/inner")
    with pytest.raises(DatasetMissing, match=r"give path=.*tree/inner"):
        check_available(NAME, tree)


def test_one_class_alone_is_refused(tree: Path) -> None:
    shutil.rmtree(tree / "tree/train/ant")
    with pytest.raises(DatasetMissing, match=r"has one class, cat, .*add labels=none"):
        dataset_spec(NAME, tree)
    assert dataset_spec(f"{NAME},labels=none", tree).classes == 0


def test_a_class_may_begin_like_a_split(tree: Path) -> None:
    (tree / "tree/train").rename(tree / "classes")
    (tree / "tree").rename(tree / "old")
    (tree / "classes").rename(tree / "tree")
    (tree / "tree/ant").rename(tree / "tree/train_station")
    for number in range(10):
        (tree / f"tree/cat/more{number}.png").write_bytes(encoded(pixels(number)))
    assert dataset_spec(NAME, tree).class_names == ("cat", "train_station")


@pytest.mark.parametrize(
    ("options", "cuts_others"),
    [
        ("", False),
        (",labels=none", True),
        (",images=40", False),
        (",test_images=4", False),
        (",corrupt=skip", False),
        (",colour=grey", False),
    ],
)
def test_the_labels_alone_decide_which_test_images_are_cut_off(
    tmp_path: Path, options: str, cuts_others: bool
) -> None:
    for label in range(2):
        (tmp_path / f"own/{label}").mkdir(parents=True)
        for seed in range(40):
            (tmp_path / f"own/{label}/{seed}.png").write_bytes(encoded(pixels(40 * label + seed)))
    name = "image-folder:path=own,size=8"
    assert cut_other_test_images(name, name + options, tmp_path) == cuts_others
    assert not cut_other_test_images("digits", name, tmp_path)
    # What is said of the names is so of the images.
    test = {image.numpy().tobytes() for image in load_test(name, tmp_path).pixels}
    trained = load_training(name + options, tmp_path).train.pixels
    if "grey" not in options:
        assert bool(test & {image.numpy().tobytes() for image in trained}) == cuts_others


def test_a_disk_that_fails_for_a_moment_leaves_out_no_image(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    images = FileImages([tree / "tree/train/cat/b.png"])
    monkeypatch.setattr("contrasweep.data.encoded.os.stat", fails)
    with pytest.raises(DatasetDamaged, match=r"b\.png: cannot be read"):
        images.read([0])
