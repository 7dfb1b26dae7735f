"""The facts that every dataset gives before it is loaded: what it offers, how it is scored, how it is cut."""

from dataclasses import replace

import pytest

from contrasweep.data import dataset_spec


@pytest.mark.parametrize(
    ("name", "offers"),
    [
        ("digits", {"images", "labels"}),
        ("colour-digits", {"images", "labels", "condition"}),
        ("biased-digits", {"images", "labels", "condition", "bias"}),
        ("stl10", {"images"}),
        ("two-view-digits", {"labels", "own views"}),
    ],
)
def test_a_dataset_offers_what_a_method_can_need(name: str, offers: set[str]) -> None:
    assert dataset_spec(name).offers == offers


@pytest.mark.parametrize(
    ("name", "headline", "measures"),
    [
        ("digits", "accuracy", ("accuracy",)),
        ("biased-digits", "balanced_accuracy", ("accuracy", "balanced_accuracy", "worst_group_accuracy")),
        ("cifar100", "accuracy", ("accuracy", "top5_accuracy")),
        ("two-view-digits", "accuracy", ("accuracy", "f1", "auc")),
        ("scene", "f1", ("f1", "auc")),
    ],
)
def test_a_dataset_names_its_scores(name: str, headline: str, measures: tuple[str, ...]) -> None:
    spec = dataset_spec(name)
    assert spec.headline == headline
    assert spec.measures(test=False) == spec.measures(test=True) == measures


def test_only_test_images_have_groupings() -> None:
    spec = replace(dataset_spec("digits"), groupings=3)
    assert "unbiased_accuracy" not in spec.measures(test=False)
    assert "unbiased_accuracy" in spec.measures(test=True)


def test_views_of_images_have_the_size_asked_for() -> None:
    digits, own = dataset_spec("digits"), dataset_spec("two-view-digits")
    assert (digits.at_view_size(12).view_size, digits.at_view_size(None).view_size) == (12, 8)
    assert own.at_view_size(12) == own


def test_images_have_one_fold_and_views_of_their_own_several() -> None:
    assert (dataset_spec("digits").folds, dataset_spec("two-view-digits").folds) == (1, 10)


def test_a_validation_split_needs_an_image_of_each_class() -> None:
    digits = dataset_spec("digits")
    digits.check_validation(0.0)
    digits.check_validation(10 / digits.train_size)
    with pytest.raises(ValueError, match="of the 1438 labelled images of digits holds out"):
        digits.check_validation(9 / digits.train_size)
