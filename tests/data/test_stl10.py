"""STL-10: read like torchvision does; unlabelled images stay apart from labelled ones."""

from pathlib import Path

import numpy as np
import pytest
import torch

from contrasweep.data import (
    UNLABELLED,
    DatasetDamaged,
    DatasetMissing,
    StreamedImages,
    dataset_spec,
    load_test,
    load_training,
)
from contrasweep.data.sources import stl10
from contrasweep.data.sources.stl10 import FOLDER, read_stl10

PARTS = {"train": 20, "test": 3, "unlabeled": 7}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data root with a few images of each part; the labels are stored from 1."""
    monkeypatch.setattr(stl10, "_PARTS", PARTS)
    generator = np.random.default_rng(0)
    folder = tmp_path / FOLDER
    folder.mkdir()
    for part, count in PARTS.items():
        generator.integers(0, 256, (count, 3, 96, 96), dtype=np.uint8).tofile(folder / f"{part}_X.bin")
        if part != "unlabeled":
            (np.arange(count, dtype=np.uint8) % 10 + 1).tofile(folder / f"{part}_y.bin")
    return tmp_path


def test_images_and_labels_are_read_as_torchvision_reads_them(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchvision import datasets

    monkeypatch.setattr(datasets.STL10, "_check_integrity", lambda self: True)
    for split, ours in (
        ("test", load_test("stl10", root)),
        ("train", load_training("stl10:split=train", root).train),
        ("train+unlabeled", load_training("stl10", root).train),
    ):
        reference = datasets.STL10(str(root), split=split)
        assert np.array_equal(ours.pixels.numpy(), reference.data)
        assert ours.labels.tolist() == reference.labels.tolist()


def test_the_spec_says_how_many_have_no_label(tmp_path: Path) -> None:
    spec = dataset_spec("stl10", tmp_path)
    assert (spec.train_size, spec.unlabelled_size, spec.test_size) == (105_000, 100_000, 8_000)
    labelled = dataset_spec("stl10:split=train", tmp_path)
    assert (labelled.train_size, labelled.unlabelled_size) == (5_000, 0)
    assert labelled.name == "stl10:split=train"
    assert spec.name == "stl10"


def test_a_validation_split_is_cut_from_the_labelled_images_alone(root: Path) -> None:
    cut = load_training("stl10", root, validation_fraction=0.5)
    assert cut.validation is not None
    assert sorted(cut.validation.labels.tolist()) == list(range(10))
    assert int((cut.train.labels == UNLABELLED).sum()) == PARTS["unlabeled"]
    assert len(cut.train) == 17
    labelled = cut.train.labelled()
    assert sorted(labelled.labels.tolist()) == list(range(10))
    kept = (cut.train.labels != UNLABELLED).nonzero().flatten()
    assert torch.equal(labelled.pixels, cut.train.pixels[kept])
    assert labelled.labelled() is labelled


def test_a_stream_has_the_pixels_of_the_resident_set(root: Path) -> None:
    streamed = load_training("stl10", root, placement="stream").train.images
    resident = load_training("stl10", root).train.images
    assert isinstance(streamed, StreamedImages)
    # Rows from both files, in any order.
    rows = torch.tensor([26, 0, 20, 19, 5])
    assert torch.equal(streamed[rows], resident[rows])


def test_without_the_unlabelled_images_their_file_is_not_needed(root: Path) -> None:
    (root / FOLDER / "unlabeled_X.bin").unlink()
    assert len(load_training("stl10:split=train", root).train) == 20
    with pytest.raises(DatasetMissing, match=r"lacks unlabeled_X\.bin"):
        load_training("stl10", root)


def test_a_label_out_of_range_and_a_short_file_are_named(root: Path) -> None:
    np.array([1, 0, 11], dtype=np.uint8).tofile(root / FOLDER / "test_y.bin")
    with pytest.raises(DatasetDamaged, match=r"label -1 of row 1 of .*test_y\.bin .* out of range"):
        read_stl10(root, ("test",))
    (root / FOLDER / "test_X.bin").write_bytes(b"short")
    with pytest.raises(DatasetMissing, match=r"test_X\.bin has 5 bytes, expected 82,944"):
        load_test("stl10", root)
