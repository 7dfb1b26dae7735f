"""scikit-learn's handwritten digits, plain and on coloured backgrounds: embedded, so nothing to fetch."""

from pathlib import Path

import torch

from data.colour import COLOUR_NAME, on_palette_colours
from data.images import LabelledImages
from data.seeds import torch_generator
from data.spec import DatasetFamily, DatasetSpec, Options, Split
from data.splits import stratified_split

_TEST_SHARE = 0.2


def read_digits(split: Split) -> LabelledImages:
    """Read scikit-learn's 1,797 handwritten digits, ``(N, 1, 8, 8)``, cut 80/20 by label.

    The set comes without a split of its own; this one is fixed by name and never changes.
    The stored levels 0..16 are spread over 0..255.
    """
    from sklearn.datasets import load_digits

    stored = load_digits()
    levels = torch.from_numpy(stored.images)
    labels = torch.from_numpy(stored.target).long()
    images = (levels * (255.0 / 16.0)).round().to(torch.uint8).unsqueeze(1)
    rows = stratified_split(labels, _TEST_SHARE, torch_generator("digits", "test split"))
    return LabelledImages(images, labels).subset(rows[0] if split == "train" else rows[1])


def _describe(name: str, summary: str, channels: int, condition_dim: int | None) -> DatasetSpec:
    return DatasetSpec(
        name=name,
        summary=summary,
        classes=10,
        channels=channels,
        image_size=8,
        view_size=8,
        train_size=1438,
        test_size=359,
        condition_dim=condition_dim,
        condition_name=COLOUR_NAME if condition_dim else None,
        licence="CC BY 4.0 (Alpaydin and Kaynak, UCI Machine Learning Repository)",
        source="scikit-learn, sklearn.datasets.load_digits",
        folder=None,
    )


def _always_there(root: Path, options: Options) -> None:
    """Accept: the digits come with scikit-learn."""


_PLAIN = _describe("digits", "1,797 handwritten digits of 8 x 8 pixels, cut 80/20 by a fixed split", 1, None)
_COLOUR = _describe(
    "colour-digits", "digits with black strokes on ColorMNIST's noisy background colours", 3, 3
)

DIGITS = DatasetFamily(
    name="digits",
    summary=_PLAIN.summary,
    describe=lambda root, options: _PLAIN,
    check=_always_there,
    read=lambda root, split, options: read_digits(split),
)

COLOUR_DIGITS = DatasetFamily(
    name="colour-digits",
    summary=_COLOUR.summary,
    describe=lambda root, options: _COLOUR,
    check=_always_there,
    read=lambda root, split, options: on_palette_colours(read_digits(split), "colour-digits", split),
)
