"""Draw docs/images/contact-sheet.png: every set of images that is derived from another, ten images of each.

    python -m docs.contact_sheet [FILE]

needs MNIST under $CONTRASWEEP_DATA. Under each image stand its label and, where there is one, its bias label.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from contrasweep.data import LabelledImages, MultiView, load_test, load_training, load_transductive

_TILE = 56
_CAPTION = 200
_TEXT = 13
_SHEET = Path(__file__).parent / "images" / "contact-sheet.png"


@dataclass(frozen=True)
class Strip:
    """One line of the sheet: ten images, uint8 `(10, C, H, W)`, and what stands beside and below them."""

    caption: str
    images: Tensor
    notes: list[str]


def _one_of_each(labels: Tensor, among: Tensor | None = None) -> Tensor:
    """Return the first row of each class 0..9, of those where `among` holds."""
    wanted = torch.ones_like(labels, dtype=torch.bool) if among is None else among
    return torch.stack([((labels == label) & wanted).nonzero()[0, 0] for label in range(10)])


def _strip(caption: str, images: LabelledImages, among: Tensor | None = None) -> Strip:
    shown = images.subset(_one_of_each(images.labels, among))
    if shown.bias is None:
        return Strip(caption, shown.pixels, [str(label) for label in shown.labels.tolist()])
    both = zip(shown.labels.tolist(), shown.bias.tolist(), strict=True)
    return Strip(caption, shown.pixels, [f"{label} / {bias}" for label, bias in both])


def _biased(name: str) -> Iterator[Strip]:
    train, test = load_training(name).train, load_test(name)
    assert train.bias is not None
    yield _strip(f"{name}\ntraining, own colour", train, train.bias == train.labels)
    yield _strip(f"{name}\ntraining, other colour", train, train.bias != train.labels)
    yield _strip(f"{name}\ntest", test)


def _views(name: str, labelled: MultiView) -> Iterator[Strip]:
    assert labelled.labels is not None
    rows = _one_of_each(labelled.labels)
    for number, view in enumerate(labelled.views, start=1):
        yield Strip(f"{name}\nview {number}", view[rows], [str(label) for label in range(10)])


def strips() -> Iterator[Strip]:
    """Return the lines of the sheet."""
    for name in ("colour-digits", "colormnist"):
        for colours in ("palette", "uniform"):
            yield _strip(f"{name}\ncolours={colours}", load_training(f"{name}:colours={colours}").train)
    yield from _biased("biased-digits")
    yield from _biased("biased-mnist")
    for options in ("noise=uniform", "noise=uniform,level=0.5", "noise=gaussian"):
        yield _strip(f"noisy-mnist\n{options}", load_test(f"noisy-mnist:{options}"))
    for name in ("two-view-digits", "noisy-mnist-2v:level=0.5"):
        yield from _views(name, load_transductive(name).labelled)


def draw(lines: list[Strip]) -> Image.Image:
    """Return the sheet."""
    height = _TILE + _TEXT + 5
    sheet = Image.new("RGB", (_CAPTION + 10 * (_TILE + 4), len(lines) * height + 4), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(11)
    for row, line in enumerate(lines):
        top = row * height + 4
        pen.multiline_text((6, top + 10), line.caption, fill="black", font=font)
        for column, (pixels, note) in enumerate(zip(line.images, line.notes, strict=True)):
            left = _CAPTION + column * (_TILE + 4)
            tile = Image.fromarray(pixels.expand(3, -1, -1).permute(1, 2, 0).numpy())
            sheet.paste(tile.resize((_TILE, _TILE), Image.Resampling.NEAREST), (left, top))
            pen.text((left + 2, top + _TILE), note, fill="black", font=font)
    return sheet


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else _SHEET
    draw(list(strips())).quantize(256, dither=Image.Dither.NONE).save(target, optimize=True)
