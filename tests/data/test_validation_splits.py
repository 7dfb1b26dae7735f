"""The validation split of biased data: the images that are held out, and the score of a model of the bias."""

import pytest
import torch
from real_data import real_root
from torch import Tensor

from contrasweep.data import LabelledImages, TrainingData, load_training
from contrasweep.data.sources.biased import BIAS_COLOURS, bias_counts
from contrasweep.data.splits import ValidationSplit, halved_rows, held_out_rows
from contrasweep.models import group_balanced_accuracy

MARGIN = 0.03
BIASED: tuple[ValidationSplit, ...] = ("group", "recoloured")


def _biased_rows(aligned: int, conflicting: int) -> tuple[Tensor, Tensor]:
    """Return labels and biases of ten classes, each with as many aligned and, in all, conflicting rows."""
    labels, bias = [], []
    for label in range(10):
        others = [(label + 1 + row % 9) % 10 for row in range(conflicting)]
        labels += [label] * (aligned + conflicting)
        bias += [*[label] * aligned, *others]
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    return torch.tensor(labels)[order], torch.tensor(bias)[order]


def _rows(split: ValidationSplit, labels: Tensor, bias: Tensor, fraction: float, seed: int = 0) -> Tensor:
    return held_out_rows(split, labels, bias, fraction, torch.Generator().manual_seed(seed))


def _groups(labels: Tensor, bias: Tensor) -> Tensor:
    return torch.bincount(labels * 10 + bias, minlength=100).view(10, 10)


def _conflicting(images: LabelledImages) -> int:
    assert images.bias is not None
    return int((images.labels != images.bias).sum())


def _validation(loaded: TrainingData) -> LabelledImages:
    assert loaded.validation is not None
    return loaded.validation


@pytest.mark.parametrize("split", BIASED)
@pytest.mark.parametrize("fraction", [0.1, 0.25])
def test_the_rows_are_distinct_as_many_as_asked_for_and_follow_the_seed(
    split: ValidationSplit, fraction: float
) -> None:
    labels, bias = _biased_rows(aligned=594, conflicting=6)
    rows = _rows(split, labels, bias, fraction)
    assert len(rows) == len(rows.unique()) == round(fraction * 6000)
    assert torch.equal(rows, rows.sort().values)
    assert torch.equal(rows, _rows(split, labels, bias, fraction))
    assert not torch.equal(rows, _rows(split, labels, bias, fraction, seed=1))


@pytest.mark.parametrize("seed", range(5))
def test_by_group_every_class_and_bias_gives_its_share(seed: int) -> None:
    labels, bias = _biased_rows(aligned=551, conflicting=49)
    rows = _rows("group", labels, bias, 0.1, seed)
    whole, cut = _groups(labels, bias), _groups(labels[rows], bias[rows])
    assert bool((cut >= (0.1 * whole).floor()).all())
    assert bool((cut <= (0.1 * whole).ceil()).all())
    # Groups of five or six images give none or one; together they give their share.
    assert int((labels[rows] != bias[rows]).sum()) == pytest.approx(49, abs=5)


@pytest.mark.parametrize("seed", range(5))
def test_recoloured_images_are_aligned_ones_as_long_as_these_are_the_most(seed: int) -> None:
    labels, bias = _biased_rows(aligned=551, conflicting=49)
    rows = _rows("recoloured", labels, bias, 0.1, seed)
    assert labels[rows].bincount().tolist() == [60] * 10
    assert torch.equal(labels[rows], bias[rows])


def test_where_no_bias_is_rare_the_largest_groups_shrink_to_the_same_size() -> None:
    labels, bias = _biased_rows(aligned=70, conflicting=450)
    rows = _rows("recoloured", labels, bias, 0.25)
    kept = torch.ones(len(labels), dtype=torch.bool)
    kept[rows] = False
    left = _groups(labels[kept], bias[kept])
    assert labels[rows].bincount().tolist() == [130] * 10
    assert left.unique().tolist() == [39]


def test_data_without_a_bias_are_cut_by_class_alone() -> None:
    labels = torch.arange(100) % 10
    with pytest.raises(ValueError, match="a validation split by group is for data with a bias"):
        held_out_rows("group", labels, None, 0.1, torch.Generator())
    with pytest.raises(ValueError, match="a validation split by group is for data with a bias"):
        load_training("digits", validation_fraction=0.1, split="group")


@pytest.mark.parametrize("part", ["", ",images=1000"])
def test_recoloured_digits_say_nothing_of_the_class_and_leave_the_conflicting_ones(part: str) -> None:
    name = f"biased-digits:rho=0.95{part}"
    whole = load_training(name).train
    cut = load_training(name, validation_fraction=0.2, split="recoloured")
    held_out = _validation(cut)
    assert (len(cut.train) + len(held_out), len(held_out)) == (len(whole), round(0.2 * len(whole)))
    assert _conflicting(cut.train) == _conflicting(whole) > 50
    assert held_out.bias is not None
    for label, count in enumerate(held_out.labels.bincount().tolist()):
        shown = held_out.bias[held_out.labels == label].bincount(minlength=10)
        others = [int(shown[(label + step) % 10]) for step in range(1, 10)]
        assert [int(shown[label]), *sorted(others, reverse=True)] == bias_counts(count, 0.1)
    assert torch.equal(held_out.condition, torch.tensor(BIAS_COLOURS)[held_out.bias].float())


@pytest.mark.parametrize("name", ["biased-digits", "biased-digits:images=1000"])
def test_a_recoloured_image_is_not_among_those_trained_on(name: str) -> None:
    cut = load_training(name, validation_fraction=0.2, split="recoloured")
    strokes = [
        {image.numpy().tobytes() for image in (part.pixels == 255).all(dim=1)}
        for part in (cut.train, _validation(cut))
    ]
    whole = load_training(name).train.pixels
    assert len(strokes[0] | strokes[1]) == len(
        {image.numpy().tobytes() for image in (whole == 255).all(dim=1)}
    )


def test_the_recoloured_split_follows_its_seed() -> None:
    first, again, other = (
        _validation(
            load_training("biased-digits", validation_fraction=0.1, split_seed=seed, split="recoloured")
        )
        for seed in (1, 1, 2)
    )
    assert torch.equal(first.pixels, again.pixels)
    assert torch.equal(first.bias, again.bias)
    assert not torch.equal(first.pixels, other.pixels)


def test_a_model_of_the_colour_scores_chance_on_real_recoloured_images() -> None:
    name = "biased-mnist:rho=0.999"
    root = real_root(name)
    whole = load_training(name, root).train
    cut = load_training(name, root, validation_fraction=0.1, split="recoloured")
    held_out = _validation(cut)
    assert (len(cut.train), len(held_out)) == (54_000, 6_000)
    assert _conflicting(cut.train) == _conflicting(whole) == 63
    groups = _groups(held_out.labels, held_out.bias)
    assert 54 <= int(groups.min()) <= int(groups.max()) <= 68
    balanced = group_balanced_accuracy(held_out.bias, held_out.labels, held_out.bias)
    assert balanced <= 0.1 + MARGIN
    assert float((held_out.bias == held_out.labels).double().mean()) <= 0.1 + MARGIN


@pytest.mark.parametrize(("split", "few"), [("class", 7), ("group", 6)])
def test_the_images_that_a_cut_holds_out_of_real_biased_ones(split: ValidationSplit, few: int) -> None:
    # The reason for the recoloured split: a cut cannot hold out what is not there.
    name = "biased-mnist:rho=0.999"
    cut = load_training(name, real_root(name), validation_fraction=0.1, split=split)
    held_out = _validation(cut)
    assert (len(held_out), _conflicting(held_out)) == (6_000, few)
    assert _conflicting(cut.train) == 63 - few
    # Ten groups are all right, those of these images all wrong: one image more or less is six points.
    balanced = group_balanced_accuracy(held_out.bias, held_out.labels, held_out.bias)
    assert balanced == pytest.approx(10 / (10 + few))


@pytest.mark.parametrize("with_bias", [True, False])
def test_halves_share_every_group_and_no_row(with_bias: bool) -> None:
    labels, bias = _biased_rows(aligned=31, conflicting=20)
    given = bias if with_bias else None
    first, second = halved_rows(labels, given, torch.Generator().manual_seed(0))
    assert (len(first), len(second)) == (255, 255)
    assert torch.equal(torch.cat([first, second]).sort().values, torch.arange(510))
    counts = [torch.bincount(labels[rows], minlength=10) for rows in (first, second)]
    if with_bias:
        counts = [_groups(labels[rows], bias[rows]) for rows in (first, second)]
    assert int((counts[0] - counts[1]).abs().max()) <= 1
    again = halved_rows(labels, given, torch.Generator().manual_seed(0))
    assert torch.equal(again[0], first)
    assert not torch.equal(halved_rows(labels, given, torch.Generator().manual_seed(1))[0], first)


def test_halves_of_sets_of_labels_and_of_odd_numbers() -> None:
    sets = torch.tensor([[1, 0], [1, 0], [0, 1], [0, 1], [1, 1]])
    first, second = halved_rows(sets, None, torch.Generator().manual_seed(0))
    assert (len(first), len(second)) == (3, 2)
    assert (sets[first][:, 0] != sets[first][:, 1]).any()
    with pytest.raises(ValueError, match="cannot be halved"):
        halved_rows(sets[:1], None, torch.Generator().manual_seed(0))


def test_classes_that_the_validation_split_lacks_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """The smallest classes have 2 images each, and the tenth of these is none."""
    load_training("digits:imbalance=exponential,at_least=2", validation_fraction=0.1)
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "has no image of 6 of 10 classes (0, 1, 2, 3 and 2 more)" in warning
    caplog.clear()
    load_training("digits", validation_fraction=0.1)
    assert not caplog.records
