"""scikit-learn's handwritten digits, plain and on coloured backgrounds. They need no download."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import torch

from contrasweep.data.colour import COLOURS_OPTION, Colours, on_random_colours
from contrasweep.data.images import LabelledImages
from contrasweep.data.imbalance import IMBALANCE_OPTIONS, imbalanced, kept_counts
from contrasweep.data.seeds import torch_generator
from contrasweep.data.spec import COLOUR_NAME, DatasetFamily, DatasetSpec, Options, Split
from contrasweep.data.splits import stratified_split

TRAIN_COUNTS = (142, 146, 142, 146, 145, 146, 145, 143, 139, 144)
"""Training images of each digit."""

_TEST_SHARE = 0.2


def read_all_digits() -> LabelledImages:
    """Read scikit-learn's 1,797 handwritten digits, ``(N, 1, 8, 8)``, in its order.

    The stored levels 0..16 are spread over 0..255.
    """
    from sklearn.datasets import load_digits

    stored = load_digits()
    levels = torch.from_numpy(stored.images)
    labels = torch.from_numpy(stored.target).long()
    return LabelledImages((levels * (255.0 / 16.0)).round().to(torch.uint8).unsqueeze(1), labels)


def read_digits(split: Split) -> LabelledImages:
    """Read one side of the digits, cut 80/20 by label.

    The set has no published split. Ours is fixed by name and never changes.
    """
    digits = read_all_digits()
    rows = stratified_split(digits.labels, _TEST_SHARE, torch_generator("digits", "test split"))
    return digits.subset(rows[0] if split == "train" else rows[1])


def digits_spec(name: str, summary: str, channels: int = 1) -> DatasetSpec:
    """Return the facts shared by all sets made from the digits."""
    return DatasetSpec(
        name=name,
        summary=summary,
        classes=10,
        channels=channels,
        image_size=8,
        view_size=8,
        train_size=sum(TRAIN_COUNTS),
        test_size=359,
        licence="CC BY 4.0 (Alpaydin and Kaynak, UCI Machine Learning Repository)",
        source="scikit-learn, sklearn.datasets.load_digits",
        folder=None,
    )


def always_there(root: Path, options: Options) -> None:
    """Accept: the digits come with scikit-learn."""


def _describe_digits(root: Path, options: Options) -> DatasetSpec:
    train_size = sum(kept_counts(TRAIN_COUNTS, options))
    return replace(digits_spec(DIGITS.full_name(options), DIGITS.summary), train_size=train_size)


def _read_digits(root: Path, split: Split, options: Options) -> LabelledImages:
    images = read_digits(split)
    return imbalanced(images, "digits", TRAIN_COUNTS, options) if split == "train" else images


def _describe_colour_digits(root: Path, options: Options) -> DatasetSpec:
    spec = digits_spec(COLOUR_DIGITS.full_name(options), COLOUR_DIGITS.summary, channels=3)
    return replace(spec, condition_dim=3, condition_name=COLOUR_NAME)


def _read_colour_digits(root: Path, split: Split, options: Options) -> LabelledImages:
    return on_random_colours(read_digits(split), "colour-digits", split, cast(Colours, options["colours"]))


DIGITS = DatasetFamily(
    name="digits",
    summary="1,797 handwritten digits of 8 x 8 pixels, cut 80/20 by a fixed split",
    describe=_describe_digits,
    check=always_there,
    read=_read_digits,
    options=IMBALANCE_OPTIONS,
)

COLOUR_DIGITS = DatasetFamily(
    name="colour-digits",
    summary="digits with black strokes on ColorMNIST's noisy background colours",
    describe=_describe_colour_digits,
    check=always_there,
    read=_read_colour_digits,
    options=COLOURS_OPTION,
)
