"""Draw the contact sheets of the sets of images that are derived from others, ten images of each.

    python -m docs.contact_sheet
    python -m docs.contact_sheet corruptions [cifar10-jpeg]

The first draws docs/images/contact-sheet.png and needs MNIST under $CONTRASWEEP_DATA. The second draws
docs/images/corruptions.png, images of CIFAR-10 under each corruption, and needs CIFAR-10 (in this folder) and
the pictures of frost. Under each image stand its label and, where there is one, its bias label.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from contrasweep.data import (
    LabelledImages,
    MultiView,
    data_root,
    load_test,
    load_training,
    load_transductive,
)
from contrasweep.data.sources.cifar import CIFAR10_LAYOUT
from contrasweep.data.sources.corrupted import KINDS, corrupted, read_plain

_TILE = 56
_CAPTION = 200
_TEXT = 13
_IMAGES = Path(__file__).parent / "images"


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


def corruption_strips(folder: str) -> Iterator[Strip]:
    """Return ten images, one of each class, as they are and under every corruption at two severities.

    Class c has the corruption c. The last three lines are from the dataset: training images with the
    corruption of their class and with another one, and test images.
    """
    plain = read_plain(data_root(), "test", {"path": folder})
    shown = plain.subset(_one_of_each(plain.labels))
    yield _strip("CIFAR-10, test", shown)
    for kind, names in KINDS.items():
        for severity in (1, 4):
            options = {"type": kind, "severity": severity}
            made = corrupted(shown, torch.arange(10), options, "contact sheet", torch.arange(10))
            notes = [
                name.replace("Gaussian", "Gauss.").replace(" Noise", " n.").replace(" Blur", " b.")
                for name in names
            ]
            yield Strip(f"type={kind}\nseverity={severity}", made.pixels, notes)
    name = f"corrupted-cifar10:layout=derived,path={folder}"
    train, test = load_training(name).train, load_test(name)
    assert train.bias is not None
    assert test.bias is not None
    yield _strip("type=0, severity=4\ntraining, own corruption", train, train.bias == train.labels)
    yield _strip("type=0, severity=4\ntraining, another", train, train.bias != train.labels)
    yield _strip("type=0, severity=4\ntest", test, test.bias == (test.labels + 3) % 10)


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


def main() -> None:
    """Draw one of the two sheets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sheet", nargs="?", choices=["contact-sheet", "corruptions"], default="contact-sheet")
    parser.add_argument("folder", nargs="?", default=CIFAR10_LAYOUT.folder, help="of CIFAR-10")
    given = parser.parse_args()
    lines = corruption_strips(given.folder) if given.sheet == "corruptions" else strips()
    sheet = draw(list(lines)).quantize(256, dither=Image.Dither.NONE)
    sheet.save(_IMAGES / f"{given.sheet}.png", optimize=True)


if __name__ == "__main__":
    main()
