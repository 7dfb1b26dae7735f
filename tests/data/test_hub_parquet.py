"""Parquet in the form of the hub: facts from the files, images, and refused files."""

import json
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from encoded_files import encoded, pixels, write_parquet
from pyarrow.fs import LocalFileSystem
from torch import Tensor

from contrasweep.data import (
    UNLABELLED,
    DatasetDamaged,
    DatasetMissing,
    DatasetSpec,
    Placement,
    StreamedImages,
    check_available,
    dataset_spec,
    image_batches,
    image_chunks,
    load_test,
    load_training,
    parquet,
)
from contrasweep.data.sources import HUB_PARQUET

LEVELS = torch.stack([torch.from_numpy(pixels(seed)).permute(2, 0, 1) for seed in range(14)])
IMAGES = [encoded(image.permute(1, 2, 0).numpy()) for image in LEVELS]
LABELS = [row % 3 for row in range(14)]


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CONTRASWEEP_PLACEMENT", raising=False)
    return tmp_path / "cache/contrasweep/unpacked"


def write_set(root: Path, **keywords: object) -> str:
    """Ten training images in two files, four to a row group, and four test images."""
    folder = root / "set"
    write_parquet(folder / "train-00000-of-00002.parquet", IMAGES[:6], LABELS[:6], **keywords)  # type: ignore[arg-type]
    write_parquet(folder / "train-00001-of-00002.parquet", IMAGES[6:10], LABELS[6:10], **keywords)  # type: ignore[arg-type]
    write_parquet(folder / "test-00000-of-00001.parquet", IMAGES[10:], LABELS[10:], **keywords)  # type: ignore[arg-type]
    return "hub-parquet:path=set"


@pytest.mark.parametrize("absolute", [False, True])
def test_both_splits_hold_the_images_that_were_written(tmp_path: Path, absolute: bool) -> None:
    name = write_set(tmp_path)
    if absolute:
        name, root = f"hub-parquet:path={tmp_path / 'set'}", tmp_path / "elsewhere"
    else:
        root = tmp_path
    check_available(name, root)
    train, test = load_training(name, root).train, load_test(name, root)
    assert isinstance(train.images, Tensor)
    assert torch.equal(train.images, LEVELS[:10])
    assert torch.equal(test.pixels, LEVELS[10:])
    assert (train.labels.tolist(), test.labels.tolist()) == (LABELS[:10], LABELS[10:])


def test_a_uri_is_read_through_its_filesystem(tmp_path: Path) -> None:
    write_set(tmp_path)
    name = f"hub-parquet:path={(tmp_path / 'set').as_uri()}"
    assert torch.equal(load_test(name, Path("/nowhere")).pixels, LEVELS[10:])


def test_the_facts_are_read_from_footers_and_headers(tmp_path: Path) -> None:
    spec = dataset_spec(write_set(tmp_path), tmp_path)
    assert spec.name == "hub-parquet:path=set"
    assert (spec.train_size, spec.test_size, spec.classes) == (10, 4, 3)
    assert (spec.channels, spec.image_size, spec.view_size) == (3, 8, 8)
    assert not spec.embedded


def test_a_first_file_without_rows_says_nothing_of_the_images(tmp_path: Path) -> None:
    name = write_set(tmp_path)
    write_parquet(tmp_path / "set/train-00000-of-00002.parquet", [], [])
    spec = dataset_spec(name, tmp_path)
    assert isinstance(spec, DatasetSpec)
    assert (spec.image_size, spec.channels, spec.train_size) == (8, 3, 4)
    write_parquet(tmp_path / "set/train-00001-of-00002.parquet", [], [])
    with pytest.raises(DatasetDamaged, match=r"train-00000-of-00002\.parquet holds no images"):
        dataset_spec(name, tmp_path)


@pytest.mark.parametrize("statistics", [True, False])
def test_without_names_the_largest_training_label_says_how_many_classes(
    tmp_path: Path, statistics: bool
) -> None:
    name = write_set(tmp_path, statistics=statistics)
    assert dataset_spec(name, tmp_path).classes == 3


HUB = {"info": {"license": "mit", "features": {"label": {"names": list("abcd"), "_type": "ClassLabel"}}}}


def test_a_class_that_training_lacks_keeps_its_number(tmp_path: Path) -> None:
    """In a long tail, the rarest class may have test images alone."""
    write_parquet(tmp_path / "set/train-0.parquet", IMAGES[:6], [0, 1, 2, 4, 0, 1])
    write_parquet(tmp_path / "set/test-0.parquet", IMAGES[:2], [3, 4])
    assert dataset_spec("hub-parquet:path=set", tmp_path).classes == 5
    assert load_test("hub-parquet:path=set", tmp_path).labels.tolist() == [3, 4]


def test_numbers_with_gaps_are_the_names_of_the_classes(tmp_path: Path) -> None:
    """Labels that begin with 1 have no class 0; -1 is no label and no class."""
    labels = [10, 3, 1, 10, 3, 1, 10, 3]
    write_parquet(tmp_path / "set/train-0.parquet", IMAGES[:8], [*labels[:6], -1, None])
    write_parquet(tmp_path / "set/test-0.parquet", IMAGES[:2], [3, 10])
    spec = dataset_spec("hub-parquet:path=set", tmp_path)
    assert (spec.classes, spec.told_classes) == (3, ("1", "3", "10"))
    train = load_training("hub-parquet:path=set", tmp_path).train
    assert train.labels.tolist() == [2, 1, 0, 2, 1, 0, UNLABELLED, UNLABELLED]
    assert load_test("hub-parquet:path=set", tmp_path).labels.tolist() == [1, 2]
    write_parquet(tmp_path / "set/test-0.parquet", IMAGES[:2], [3, 2])
    with pytest.raises(DatasetDamaged, match="unknown label"):
        load_test("hub-parquet:path=set", tmp_path)


@pytest.mark.parametrize("metadata", [{"huggingface": json.dumps(HUB)}, {"class_names": "a,b,c,d"}])
def test_the_schema_s_metadata_names_the_classes(tmp_path: Path, metadata: dict[str, str]) -> None:
    spec = dataset_spec(write_set(tmp_path, metadata=metadata), tmp_path)
    assert (spec.classes, spec.class_names) == (4, ("a", "b", "c", "d"))
    assert spec.licence == ("mit" if "huggingface" in metadata else "see the dataset's card")


@pytest.mark.parametrize("columns", [("image", "labels"), ("img", "fine_label")])
def test_columns_go_by_their_usual_names(tmp_path: Path, columns: tuple[str, str]) -> None:
    name = write_set(tmp_path, columns=columns)
    assert load_test(name, tmp_path).labels.tolist() == LABELS[10:]


def test_another_label_column_is_named_by_an_option(tmp_path: Path) -> None:
    name = write_set(tmp_path, columns=("img", "coarse_label"))
    with pytest.raises(DatasetDamaged, match="no column label or labels or fine_label: name one with label="):
        check_available(name, tmp_path)
    with pytest.raises(DatasetDamaged, match="Did you mean 'coarse_label'"):
        check_available(f"{name},label=coarse_lable", tmp_path)
    assert load_test(f"{name},label=coarse_label", tmp_path).labels.tolist() == LABELS[10:]


@pytest.mark.parametrize("placement", ["resident", "stream"])
def test_the_training_split_can_be_cut_to_unequal_classes(tmp_path: Path, placement: Placement) -> None:
    # Of 4, 3 and 3 images in levels 1, 2 and 3 of 3 the linear rule leaves 1, 2 and 3.
    name = write_set(tmp_path) + ",imbalance=linear"
    assert dataset_spec(name, tmp_path).train_size == 6
    train = load_training(name, tmp_path, placement=placement).train
    assert torch.bincount(train.labels).tolist() == [1, 2, 3]
    chunk = next(image_chunks(train.images, 6))
    assert all(any(torch.equal(image, LEVELS[row]) for row in range(10)) for image in chunk)
    assert len(load_test(name, tmp_path)) == 4
    moved = tmp_path / "elsewhere"
    shutil.copytree(tmp_path / "set", moved / "set")
    again = load_training(name, moved, placement=placement).train
    assert torch.equal(next(image_chunks(again.images, 6)), chunk)


def test_a_group_of_classes_can_share_a_level(tmp_path: Path) -> None:
    name = write_set(tmp_path) + ",imbalance=exponential,group=3"
    assert dataset_spec(name, tmp_path).train_size == 10
    with pytest.raises(ValueError, match="groups of 2 do not divide 3 classes"):
        dataset_spec(name.replace("group=3", "group=2"), tmp_path)
    with pytest.raises(ValueError, match="at_least=1 keeps one"):
        dataset_spec(write_set(tmp_path) + ",imbalance=exponential", tmp_path)
    with pytest.raises(ValueError, match="imbalance=linear or exponential only"):
        dataset_spec(write_set(tmp_path) + ",at_least=2", tmp_path)


def test_validation_files_are_the_test_split_without_test_files(tmp_path: Path) -> None:
    name = write_set(tmp_path)
    file = tmp_path / "set/test-00000-of-00001.parquet"
    write_parquet(file.with_name("validation-00000-of-00001.parquet"), IMAGES[:1], [2])
    assert len(load_test(name, tmp_path)) == 4
    assert len(load_test(f"{name},test=validation", tmp_path)) == 1
    file.unlink()
    assert len(load_test(name, tmp_path)) == 1


@pytest.mark.parametrize("fraction", [0.0, 0.3])
def test_a_stream_has_the_pixels_of_the_resident_set(tmp_path: Path, fraction: float) -> None:
    name = write_set(tmp_path)
    resident = load_training(name, tmp_path, fraction, placement="resident")
    streamed = load_training(name, tmp_path, fraction, placement="stream")
    batches = list(torch.split(torch.randperm(len(resident.train)), 3))
    assert isinstance(streamed.train.images, StreamedImages)
    assert streamed.train.images.shape == resident.train.images.shape
    assert torch.equal(streamed.train.labels, resident.train.labels)
    drawn = image_batches(streamed.train.images, batches), image_batches(resident.train.images, batches)
    assert all(torch.equal(one, other) for one, other in zip(*drawn, strict=True))
    assert torch.equal(streamed.train.pixels, resident.train.pixels)
    if streamed.validation is not None and resident.validation is not None:
        assert torch.equal(streamed.validation.pixels, resident.validation.pixels)


def test_images_are_unpacked_once_and_only_for_random_access(tmp_path: Path, cache: Path) -> None:
    name = write_set(tmp_path)
    streamed = load_training(name, tmp_path, placement="stream").train.images
    load_test(name, tmp_path)
    assert isinstance(streamed, StreamedImages)
    streamed.resident()
    assert not cache.exists()
    streamed[torch.tensor([3, 1])]
    (folder,) = (entry for entry in cache.iterdir() if entry.is_dir())
    written = (folder / "images.bin").stat().st_mtime_ns
    again = load_training(name, tmp_path, placement="stream").train.images
    assert torch.equal(again[torch.tensor([9, 0])], LEVELS[[9, 0]])
    assert (folder / "images.bin").stat().st_mtime_ns == written
    # A changed file is another content.
    write_parquet(tmp_path / "set/train-00000-of-00002.parquet", IMAGES[1:7], LABELS[1:7])
    changed = load_training(name, tmp_path, placement="stream").train.images
    assert torch.equal(changed[torch.tensor([9, 0])], LEVELS[[9, 1]])


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_a_row_group_is_read_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    read: list[int] = []
    original = pq.ParquetFile.iter_batches

    def counted(file: pq.ParquetFile, *args: object, **keywords: object) -> Iterator[pa.RecordBatch]:
        for one in original(file, *args, **keywords):
            read.append(len(one))
            yield one

    monkeypatch.setattr(parquet, "_BATCH", batch)
    write_parquet(tmp_path / "0.parquet", [*IMAGES[:6], None], LABELS[:7], row_group=5)
    state = parquet.ParquetPart(LocalFileSystem(), str(tmp_path / "0.parquet"), 0, 0)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", counted)
    for random in (False, True):
        images = parquet.ParquetImages([state], "img")
        if random:
            images.prepare_random_access()
        assert images.read(range(7)) == [*IMAGES[:6], b""]
    assert sum(read) == 14, "each group once, and once to unpack it"
    assert max(read) == min(batch, 5)


def test_a_broken_unpacking_leaves_nothing(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streamed = load_training(write_set(tmp_path), tmp_path, placement="stream").train.images
    os.truncate(tmp_path / "set/train-00001-of-00002.parquet", 60)
    with pytest.raises(DatasetDamaged, match=r"row group 0 of .*train-00001"):
        streamed[torch.tensor([3, 1])]
    assert [entry for entry in cache.iterdir() if entry.is_dir()] == []


def test_the_placement_follows_the_environment_and_wrong_words_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = write_set(tmp_path)
    monkeypatch.setenv("CONTRASWEEP_PLACEMENT", "stream")
    assert isinstance(load_training(name, tmp_path).train.images, StreamedImages)
    assert isinstance(load_test(name, tmp_path, placement="resident").images, Tensor)
    monkeypatch.setenv("CONTRASWEEP_PLACEMENT", "streem")
    with pytest.raises(ValueError, match=r"CONTRASWEEP_PLACEMENT 'streem'\. Did you mean 'stream'"):
        load_training(name, tmp_path)


def test_images_of_several_sizes_need_one_to_be_given(tmp_path: Path) -> None:
    name = write_set(tmp_path)
    write_parquet(
        tmp_path / "set/test-00000-of-00001.parquet", [IMAGES[0], encoded(pixels(1, 9, 12))], [0, 1]
    )
    with pytest.raises(
        DatasetDamaged, match=r"test-.*row 1 is 9 x 12 pixels, the first image 8 x 8: give size"
    ):
        load_test(name, tmp_path)
    assert load_test(f"{name},size=6", tmp_path).images.shape == (2, 3, 6, 6)
    assert dataset_spec(f"{name},size=6", tmp_path).image_size == 6
    write_parquet(tmp_path / "set/train-00000-of-00002.parquet", [encoded(pixels(1, 9, 12))], [0])
    with pytest.raises(DatasetDamaged, match=r"not square \(the first is 9 x 12\): give size=S"):
        dataset_spec(name, tmp_path)


def test_grey_images_have_one_channel_unless_colour_is_asked_for(tmp_path: Path) -> None:
    grey = [encoded(pixels(seed)[..., 0]) for seed in range(2)]
    for split in ("train", "test"):
        write_parquet(tmp_path / f"set/{split}-0.parquet", grey, [0, 1])
    assert load_test("hub-parquet:path=set", tmp_path).images.shape == (2, 1, 8, 8)
    assert load_test("hub-parquet:path=set,colour=rgb", tmp_path).images.shape == (2, 3, 8, 8)
    # One colour image among the first makes the set one of colours.
    write_parquet(tmp_path / "set/train-0.parquet", [*grey, IMAGES[0]], [0, 1, 1])
    assert dataset_spec("hub-parquet:path=set", tmp_path).channels == 3


@pytest.mark.parametrize("broken", [IMAGES[7][:90], None, b"no image"])
def test_a_corrupt_image_is_named_or_left_out_when_asked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, broken: bytes | None
) -> None:
    name = write_set(tmp_path)
    file = tmp_path / "set/train-00001-of-00002.parquet"
    write_parquet(file, [IMAGES[6], broken, *IMAGES[8:10]], LABELS[6:10])
    with pytest.raises(DatasetDamaged, match=r"corrupt image: .*train-00001-of-00002.parquet, row 1 cannot"):
        load_training(name, tmp_path)
    with caplog.at_level(logging.WARNING):
        train = load_training(f"{name},corrupt=skip", tmp_path).train
    kept = [row for row in range(10) if row != 7]
    assert torch.equal(train.pixels, LEVELS[kept])
    assert train.labels.tolist() == [LABELS[row] for row in kept]
    assert "1 corrupt images of 10 are left out" in caplog.text
    assert "train-00001-of-00002.parquet, row 1" in caplog.text


def test_a_label_out_of_range_is_named(tmp_path: Path) -> None:
    name = write_set(tmp_path)
    write_parquet(tmp_path / "set/test-00000-of-00001.parquet", IMAGES[:3], [0, 5, -1])
    with pytest.raises(
        DatasetDamaged, match=r"label 5 of row 1 of test split.*3 classes are numbered 0 to 2"
    ):
        load_test(name, tmp_path)
    write_parquet(tmp_path / "set/test-00000-of-00001.parquet", IMAGES[:2], [0, None])
    with pytest.raises(DatasetDamaged, match="row 1 has no label"):
        load_test(name, tmp_path)


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetMissing, match=r"nowhere does not exist\. .*absolute path, one under"):
        check_available("hub-parquet:path=nowhere", tmp_path)
    name = write_set(tmp_path)
    (tmp_path / "set/test-00000-of-00001.parquet").unlink()
    with pytest.raises(DatasetMissing, match=r"lacks test-\*\.parquet; it holds train-00000"):
        check_available(f"{name},test=test", tmp_path)


def test_a_damaged_file_or_one_without_a_column_is_named(tmp_path: Path) -> None:
    name = write_set(tmp_path)
    file = tmp_path / "set/test-00000-of-00001.parquet"
    write_parquet(file, IMAGES[:2], [0, 1], columns=("img", "other"))
    with pytest.raises(
        DatasetDamaged, match=r"unknown column of .*test-00000-of-00001\.parquet 'label'\. Known: img, other"
    ):
        check_available(name, tmp_path)
    write_parquet(tmp_path / "set/train-00001-of-00002.parquet", IMAGES[:2], [0, 1], columns=("img", "other"))
    with pytest.raises(DatasetDamaged, match=r"column of .*train-00001-of-00002\.parquet 'label'\. Known"):
        dataset_spec(name, tmp_path)
    write_set(tmp_path)
    file.write_bytes(b"PAR1 nothing else")
    with pytest.raises(DatasetDamaged, match=r"test-00000-of-00001\.parquet cannot be read as Parquet"):
        check_available(name, tmp_path)
    table = pa.table({"image": ["a.png", "b.png"], "label": [0, 1]})
    pq.write_table(table, tmp_path / "set/train-00000-of-00002.parquet")
    with pytest.raises(DatasetDamaged, match=r"no column of images, each \{bytes, path\}, as img or image"):
        check_available(name, tmp_path)


def test_the_only_column_of_images_needs_no_name_and_of_several_one_is_named(tmp_path: Path) -> None:
    name = write_set(tmp_path, columns=("picture", "label"))
    assert load_test(name, tmp_path).labels.tolist() == LABELS[10:]
    for file in (tmp_path / "set").iterdir():
        table = pq.read_table(file)
        pq.write_table(table.append_column("sketch", table.column("picture")), file)
    with pytest.raises(DatasetDamaged, match=r"several columns of images \(picture, sketch\): name one with"):
        check_available(name, tmp_path)
    check_available(f"{name},image=sketch", tmp_path)
    with pytest.raises(DatasetDamaged, match="Did you mean 'sketch'"):
        check_available(f"{name},image=skecth", tmp_path)
    with pytest.raises(DatasetDamaged, match=r"column label of .* holds no images"):
        check_available(f"{name},image=label", tmp_path)


def test_training_opens_no_test_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = write_set(tmp_path)
    opened: list[str] = []
    original = pq.ParquetFile.read

    def spy(self: pq.ParquetFile, *arguments: object, **keywords: object) -> object:
        opened.append(self.metadata.num_rows)
        return original(self, *arguments, **keywords)

    monkeypatch.setattr(pq.ParquetFile, "read", spy)
    (tmp_path / "set/test-00000-of-00001.parquet").write_bytes(b"")
    with pytest.raises(DatasetDamaged):
        check_available(name, tmp_path)
    options = HUB_PARQUET.parse(name.removeprefix("hub-parquet:"))
    assert len(HUB_PARQUET.read(tmp_path, "train", options)) == 10
    assert opened == [6, 4]


def test_cifar10_as_it_comes_from_the_hub() -> None:
    root = os.environ.get("CONTRASWEEP_DATA")
    if not root or not (Path(root) / "cifar10-jpeg").is_dir():
        pytest.skip(f"CONTRASWEEP_DATA is {root!r}: a folder with cifar10-jpeg/*.parquet is needed")
    name = "hub-parquet:path=cifar10-jpeg"
    spec = dataset_spec(name, Path(root))
    assert (spec.train_size, spec.test_size, spec.classes, spec.image_size) == (50_000, 10_000, 10, 32)
    assert spec.class_names[3] == "cat"
    test = load_test(name, Path(root))
    assert test.labels.bincount().tolist() == [1000] * 10
    # The mean level of CIFAR-10 is about 121; JPEG changes little of it.
    assert float(test.pixels.float().mean()) == pytest.approx(121, abs=1.5)
