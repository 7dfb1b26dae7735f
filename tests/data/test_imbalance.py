import math
from collections import Counter

import pytest
import torch
from real_data import real_root

from contrasweep.data import LabelledImages, dataset_spec, load_test, load_training, load_uncut
from contrasweep.data.imbalance import Rule, imbalanced_counts, imbalanced_rows
from contrasweep.data.sources.digits import SMALL_DIGITS


def test_the_linear_rule_on_cifar10() -> None:
    assert imbalanced_counts([5000] * 10, "linear") == [500 * level for level in range(1, 11)]
    # Whole numbers: 100 * 0.29 in floating point is below 29.
    assert imbalanced_counts([100] * 100, "linear") == list(range(1, 101))


def test_the_exponential_rule_on_cifar10() -> None:
    kept = imbalanced_counts([5000] * 10, "exponential", at_least=1)
    # 5000 e^-9 is 0.6, of which nothing is left but for at_least.
    assert kept == [1, *(math.floor(5000 * math.e ** (level - 10)) for level in range(2, 11))]
    assert kept[1:4] == [1, 4, 12]
    assert kept[-1] == 5000


def test_cifar100_goes_down_in_groups_of_ten() -> None:
    linear = imbalanced_counts([500] * 100, "linear", group_size=10)
    assert linear == [50 * (label // 10 + 1) for label in range(100)]
    with pytest.raises(ValueError, match="leaves none of the 500 images of class 0, level 1 of 10"):
        imbalanced_counts([500] * 100, "exponential", group_size=10)


def test_an_empty_class_is_refused_and_how_to_keep_one_is_said() -> None:
    with pytest.raises(ValueError, match=r"none of the 5,000 images of class 0.*at_least=1 keeps one"):
        imbalanced_counts([5000] * 10, "exponential")
    with pytest.raises(ValueError, match="none of the 1 images of class 0"):
        imbalanced_counts([1] * 10, "linear")


@pytest.mark.parametrize(("rule", "first"), [("linear", 3), ("exponential", 1)])
def test_a_class_without_images_stays_as_it_is(rule: Rule, first: int) -> None:
    kept = imbalanced_counts([10, 0, 10], rule, at_least=1)
    assert kept == [first, 0, 10]
    labels = torch.tensor([0, 2] * 10)
    assert labels[imbalanced_rows(labels, "x", kept)].bincount().tolist() == kept


def test_a_minimum_never_invents_images_nor_takes_any_away() -> None:
    assert imbalanced_counts([3, 100], "linear", at_least=5) == [3, 100]
    assert imbalanced_counts([100, 100], "linear", at_least=5) == [50, 100]


def test_groups_must_divide_the_classes() -> None:
    for group_size in (0, 3):
        with pytest.raises(ValueError, match="do not divide 10 classes"):
            imbalanced_counts([5] * 10, "linear", group_size)


def test_the_rows_are_exact_fixed_and_nested() -> None:
    labels = torch.arange(60) % 3
    rows = imbalanced_rows(labels, "x", [2, 5, 20])
    assert labels[rows].bincount().tolist() == [2, 5, 20]
    assert rows.tolist() == sorted(rows.tolist())
    torch.manual_seed(7)
    assert torch.equal(rows, imbalanced_rows(labels, "x", [2, 5, 20]))
    assert not torch.equal(rows, imbalanced_rows(labels, "y", [2, 5, 20]))
    assert set(rows.tolist()) < set(imbalanced_rows(labels, "x", [3, 9, 20]).tolist())
    # Not simply the first ones.
    assert rows[labels[rows] == 1].tolist() != [1, 4, 7, 10, 13]


@pytest.mark.parametrize("kept", [[2, 21, 1], [2, 0, 1]])
def test_rows_that_are_not_there_are_refused(kept: list[int]) -> None:
    with pytest.raises(ValueError, match="images of class 1 are to stay, it has 20"):
        imbalanced_rows(torch.arange(60) % 3, "x", kept)


def test_training_is_imbalanced_and_the_test_is_not() -> None:
    whole, cut = load_training("digits").train, load_training("digits:imbalance=linear").train
    assert cut.labels.bincount().tolist() == [
        n * level // 10 for level, n in enumerate(SMALL_DIGITS.train_counts, start=1)
    ]
    assert len(cut) == dataset_spec("digits:imbalance=linear").train_size
    known = {image.numpy().tobytes() for image in whole.pixels}
    assert all(image.numpy().tobytes() in known for image in cut.pixels)
    assert torch.equal(load_test("digits:imbalance=linear").pixels, load_test("digits").pixels)


def test_the_uncut_images_are_all_but_those_held_out() -> None:
    name = "digits:imbalance=linear"
    whole, part = load_training("digits").train, load_training(name, None, 0.2, 3)
    assert part.validation is not None
    uncut = load_uncut(name, None, 0.2, 3)
    assert load_uncut(name).labels.tolist() == whole.labels.tolist()
    assert len(uncut) == len(whole) - len(part.validation)
    # Images that are equal pixel by pixel count as often as they are there.
    rest = Counter(_bytes(whole)) - Counter(_bytes(part.validation))
    assert Counter(_bytes(uncut)) == rest
    assert len(load_uncut(name, None, 0.2, 4)) == len(uncut)
    assert Counter(_bytes(load_uncut(name, None, 0.2, 4))) != rest


@pytest.mark.parametrize("name", ["digits", "colour-digits", "digits:imbalance=linear,images=300"])
def test_there_is_nothing_uncut_where_no_classes_are_cut_from_a_whole_split(name: str) -> None:
    with pytest.raises(ValueError, match=r"the classes of .* are not cut to unequal sizes"):
        load_uncut(name)
    assert not dataset_spec(name).cut


def _bytes(images: LabelledImages) -> list[bytes]:
    return [image.numpy().tobytes() for image in images.pixels]


def test_a_spec_bears_its_options_and_its_size() -> None:
    spec = dataset_spec("digits:at_least=4,imbalance=exponential")
    assert spec.name == "digits:imbalance=exponential,at_least=4"
    assert spec.train_size == sum(
        max(4, math.floor(n * math.exp(level - 10)))
        for level, n in enumerate(SMALL_DIGITS.train_counts, start=1)
    )
    assert spec.train_size == len(load_training(spec.name).train)
    assert dataset_spec("digits:imbalance=none").name == "digits"


def test_options_that_cannot_be_are_refused_before_any_image_is_read() -> None:
    with pytest.raises(ValueError, match="of class 0, level 1 of 10; at_least=1 keeps one"):
        dataset_spec("digits:imbalance=exponential")
    with pytest.raises(ValueError, match="Did you mean 'linear'"):
        dataset_spec("digits:imbalance=linaer")
    with pytest.raises(ValueError, match="at_least=3 has a meaning with imbalance"):
        dataset_spec("digits:at_least=3")
    with pytest.raises(ValueError, match=r"at_least of dataset digits must be at least 0, given -1"):
        dataset_spec("digits:imbalance=linear,at_least=-1")


def test_real_mnist_has_the_counts_that_its_size_is_reckoned_by() -> None:
    cut = load_training("mnist:imbalance=linear", real_root("mnist")).train
    assert len(cut) == dataset_spec("mnist:imbalance=linear").train_size == 32_720
    assert cut.labels.bincount()[[0, 9]].tolist() == [592, 5949]
