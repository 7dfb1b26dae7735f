"""A part of the images: `images=N` for training, `test_images=N` for the test."""

import pytest
import torch
from real_data import real_root

from contrasweep.data import DATASETS, dataset_spec, load_test, load_training
from contrasweep.data.sources import FAMILIES
from contrasweep.data.splits import subset_rows


def test_every_class_keeps_its_share_and_a_smaller_part_is_within_a_larger() -> None:
    labels = torch.tensor([0] * 60 + [1] * 30 + [2] * 10)[torch.randperm(100)]
    before: set[int] = set()
    for count in (10, 20, 50, 100):
        rows = subset_rows(labels, count, "x")
        assert rows.tolist() == sorted(set(rows.tolist()))
        assert len(rows) == count
        shares = torch.tensor([0.6, 0.3, 0.1]) * count
        assert bool(((labels[rows].bincount(minlength=3) - shares).abs() <= 1).all())
        assert before <= set(rows.tolist())
        before = set(rows.tolist())


def test_the_rarest_class_stays_and_the_rows_depend_on_the_name_alone() -> None:
    labels = torch.tensor([0] * 5_000 + [1])
    rows = subset_rows(labels, 2, "x")
    assert labels[rows].tolist() == [0, 1]
    many = subset_rows(labels, 50, "x")
    torch.manual_seed(3)
    assert torch.equal(many, subset_rows(labels, 50, "x"))
    assert not torch.equal(many, subset_rows(labels, 50, "y"))


def test_sets_of_labels_are_classes() -> None:
    labels = torch.tensor([[1, 0], [1, 1], [0, 1], [1, 0]]).repeat(10, 1)
    assert labels[subset_rows(labels, 4, "x")].sum(0).tolist() == [3, 2]


def test_the_training_images_alone_are_cut() -> None:
    whole, cut = load_training("digits").train, load_training("digits:images=100").train
    assert len(cut) == dataset_spec("digits:images=100").train_size == 100
    assert cut.labels.bincount().tolist() == [10] * 10
    rows = subset_rows(whole.labels, 100, "digits")
    assert torch.equal(cut.pixels, whole.pixels[rows])
    assert torch.equal(load_test("digits:images=100").pixels, load_test("digits").pixels)
    halves = load_training("digits:images=100", validation_fraction=0.2)
    assert halves.validation is not None
    assert (len(halves.train), len(halves.validation)) == (80, 20)


def test_test_images_are_cut_on_their_own() -> None:
    name = "digits:test_images=50"
    assert len(load_training(name).train) == dataset_spec("digits").train_size
    whole, cut = load_test("digits"), load_test(name)
    assert dataset_spec(name).test_size == len(cut) == 50
    rows = subset_rows(whole.labels, 50, "digits")
    assert torch.equal(cut.pixels, whole.pixels[rows])
    assert torch.equal(cut.labels, whole.labels[rows])
    both = dataset_spec("digits:images=30,test_images=20")
    assert (both.name, both.train_size, both.test_size) == ("digits:images=30,test_images=20", 30, 20)


def test_it_goes_with_other_options_and_is_part_of_the_name() -> None:
    name = "digits:imbalance=linear,images=50"
    cut = load_training(name).train
    counts = load_training("digits:imbalance=linear").train.labels.bincount()
    assert dataset_spec(name).name == name
    shares = 50 * counts / counts.sum()
    assert bool(((cut.labels.bincount(minlength=10) - shares).abs() <= 1).all())
    assert dataset_spec("digits:images=0").name == "digits"


def test_a_condition_stays_with_its_image() -> None:
    whole, cut = load_training("colour-digits").train, load_training("colour-digits:images=40").train
    rows = subset_rows(whole.labels, 40, "colour-digits")
    assert whole.condition is not None
    assert cut.condition is not None
    assert torch.equal(cut.condition, whole.condition[rows])


@pytest.mark.parametrize("name", sorted(family.name for family in FAMILIES))
def test_every_dataset_has_the_option(name: str) -> None:
    options = DATASETS[name].options
    assert options["images"].default == options["test_images"].default == 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("digits:images=9", "images of dataset digits must be 10 to 1438, given 9"),
        ("digits:images=1439", "given 1439"),
        ("digits:test_images=360", "test_images of dataset digits must be 10 to 359, given 360"),
        ("stl10:images=500", "not all images have a label"),
        ("digits:image=500", "Did you mean 'images'"),
    ],
)
def test_sizes_out_of_range_are_refused(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataset_spec(name)


def test_cifar10_in_parquet_is_cut_before_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    root = real_root("hub-parquet:path=cifar10-jpeg")
    decoded: list[int] = []

    def counted(self, rows, out):  # type: ignore[no-untyped-def]
        decoded.extend(rows)

    monkeypatch.setattr("contrasweep.data.encoded.DecodedImages.decode", counted)
    cut = load_training("hub-parquet:path=cifar10-jpeg,images=200", root).train
    assert cut.labels.bincount().tolist() == [20] * 10
    assert len(decoded) == 200
