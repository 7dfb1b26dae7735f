import hashlib

import pytest
import torch
from real_data import real_root

from contrasweep.data import LabelledImages, dataset_spec, load_test, load_training
from contrasweep.data.sources.biased import (
    BIAS_COLOURS,
    DIGITS_STROKE,
    MNIST_STROKE,
    bias_counts,
    biased,
    draw_bias,
)


def _table(labels: torch.Tensor, bias: torch.Tensor) -> list[list[int]]:
    return torch.bincount(labels * 10 + bias, minlength=100).view(10, 10).tolist()


@pytest.mark.parametrize(
    ("images", "rho", "counts"),
    [
        (5923, 0.997, [5905, *[2] * 9]),
        (5923, 0.999, [5917, *[1] * 6, *[0] * 3]),
        (100, 0.29, [29, *[8] * 8, 7]),  # 100 * 0.29 in floating point is below 29
        (100, 1.0, [100, *[0] * 9]),
        (100, 0.0, [0, 12, *[11] * 8]),
        (1000, 0.1, [100] * 10),
        (1, 0.5, [0, 1, *[0] * 8]),
        (0, 0.5, [0] * 10),
    ],
)
def test_the_counts_are_exact(images: int, rho: float, counts: list[int]) -> None:
    assert bias_counts(images, rho) == counts


@pytest.mark.parametrize("rho", [-0.01, 1.01, float("nan")])
def test_rho_is_a_share(rho: float) -> None:
    with pytest.raises(ValueError, match=r"rho must be in 0\.\.1"):
        bias_counts(10, rho)
    for option in ("rho", "test_rho"):
        with pytest.raises(
            ValueError, match=f"{option} of dataset biased-digits must be 0 to 1, given {rho}"
        ):
            dataset_spec(f"biased-digits:{option}={rho}")


def _by_class(table: list[list[int]]) -> list[list[int]]:
    """The counts of each class: of its own colour, then of the others, falling."""
    return [
        [row[label], *sorted(row[:label] + row[label + 1 :], reverse=True)] for label, row in enumerate(table)
    ]


def test_every_class_has_the_counts_and_another_draw_of_the_colours_with_one_more() -> None:
    labels = torch.arange(1040) % 10
    table = _table(labels, draw_bias(labels, 0.8, "x", "train"))
    assert bias_counts(104, 0.8) == [83, 3, 3, 3, *[2] * 6]
    assert _by_class(table) == [bias_counts(104, 0.8)] * 10
    more = [{(c - label) % 10 for c in range(10) if row[c] == 3} for label, row in enumerate(table)]
    assert len({frozenset(steps) for steps in more}) > 5
    # As the released code shuffles the other colours of each class: none is left out by its place.
    assert set().union(*more) == set(range(1, 10))


def test_the_few_conflicting_images_of_a_strong_bias_have_any_colour() -> None:
    # At rho 0.999 a class of MNIST has six conflicting images for nine colours.
    labels = torch.arange(59_230) % 10
    table = torch.tensor(_table(labels, draw_bias(labels, 0.999, "biased-mnist", "train")))
    assert _by_class(table.tolist()) == [[5917, *[1] * 6, *[0] * 3]] * 10
    shown = table - torch.diag(table.diag())
    # In palette order each colour would meet the same six classes; a draw gives some more and some fewer.
    assert shown.sum(dim=0).unique().numel() > 1


def test_the_draw_is_fixed_and_a_larger_share_keeps_the_own_colours_of_a_smaller() -> None:
    labels = torch.arange(1000) % 10
    bias = draw_bias(labels, 0.5, "x", "train")
    torch.manual_seed(3)
    assert torch.equal(bias, draw_bias(labels, 0.5, "x", "train"))
    for other in (draw_bias(labels, 0.5, "y", "train"), draw_bias(labels, 0.5, "x", "test")):
        assert not torch.equal(bias, other)
    more = draw_bias(labels, 0.7, "x", "train") == labels
    assert bool(more[bias == labels].all())
    assert int(more.sum()) == 700


def test_strokes_are_white_and_the_rest_has_the_colour() -> None:
    strokes = LabelledImages(
        torch.tensor([0, 1, 127, 128, 255], dtype=torch.uint8).view(1, 1, 1, 5), torch.tensor([3])
    )
    for threshold, whites in ((MNIST_STROKE, 4), (DIGITS_STROKE, 2)):
        painted = biased(strokes, 1.0, "x", "train", threshold)
        colour = list(BIAS_COLOURS[3])
        expected = [colour] * (5 - whites) + [[255, 255, 255]] * whites
        assert painted.pixels[0, :, 0].T.tolist() == expected
        assert painted.bias is not None
        assert painted.condition is not None
        assert painted.bias.tolist() == [3]
        assert painted.condition.tolist() == [[225.0, 225.0, 0.0]]
        assert painted.labels.tolist() == [3]


def test_the_paper_s_palette() -> None:
    assert len(set(BIAS_COLOURS)) == 10
    assert [BIAS_COLOURS[label] for label in (0, 2, 6, 9)] == [
        (255, 0, 0), (0, 0, 255), (255, 128, 0), (50, 255, 128)
    ]  # fmt: skip


def test_biased_digits_agree_with_their_spec() -> None:
    spec = dataset_spec("biased-digits:rho=0.5")
    assert (spec.name, spec.bias_classes, spec.condition_dim) == ("biased-digits:rho=0.5", 10, 3)
    assert spec.has_colour
    assert spec.embedded
    train, test = load_training(spec.name).train, load_test(spec.name)
    assert (len(train), len(test)) == (spec.train_size, spec.test_size)
    for images, rho in ((train, 0.5), (test, 0.1)):
        assert images.bias is not None
        counts = images.labels.bincount().tolist()
        table = _table(images.labels, images.bias)
        assert [table[label][label] for label in range(10)] == [int(rho * count) for count in counts]
        assert images.pixels.shape[1:] == (3, spec.image_size, spec.image_size)
        assert torch.equal(images.condition, torch.tensor(BIAS_COLOURS)[images.bias].float())
        # The first pixel of the third row is background in most digits: it shows the colour of the bias.
        corner = images.pixels[:, :, 2, 0].float()
        shown = (corner == images.condition).all(dim=1) | (corner == 255).all(dim=1)
        assert bool(shown.all())


def test_the_test_share_is_an_option_of_its_own() -> None:
    test = load_test("biased-digits:test_rho=1.0")
    assert test.bias is not None
    assert torch.equal(test.bias, test.labels)
    assert dataset_spec("biased-digits:test_rho=1.0,rho=0.9").name == "biased-digits:test_rho=1.0"


def test_draws_never_change() -> None:
    # Results of different installations compare only while this stays: a new value needs a new revision.
    assert [dataset_spec(name).revision for name in ("biased-digits", "biased-mnist")] == [2, 2]
    digest = hashlib.sha256()
    for split in (load_training("biased-digits:rho=0.5").train, load_test("biased-digits")):
        digest.update(split.pixels.numpy().tobytes())
    assert digest.hexdigest()[:16] == "d296266328648ad6"


def test_a_split_keeps_image_colour_and_bias_together() -> None:
    cut = load_training("biased-digits", validation_fraction=0.25)
    assert cut.validation is not None
    for part in (cut.train, cut.validation):
        assert part.bias is not None
        assert torch.equal(part.condition, torch.tensor(BIAS_COLOURS)[part.bias].float())


def test_real_biased_mnist_has_the_paper_s_counts() -> None:
    train = load_training("biased-mnist", real_root("biased-mnist")).train
    assert train.bias is not None
    counts = train.labels.bincount().tolist()
    table = _table(train.labels, train.bias)
    assert _by_class(table) == [bias_counts(count, 0.997) for count in counts]
    assert sum(table[label][label] for label in range(10)) == 59_816
    assert set(train.pixels[:1000].unique().tolist()) == {0, 50, 128, 225, 255}
