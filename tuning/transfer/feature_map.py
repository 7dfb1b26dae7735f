"""A map of images by their features: which images it shows, where it places them, and their pictures.

Shapes: B and P images, D features, C channels, S pixels a side, T pixels a side of a picture.
"""

import io
import math
from collections.abc import Mapping
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

from contrasweep.data import torch_generator
from contrasweep.names import counted
from contrasweep.tuning.reports.maps import Colouring, FeatureMap, Panel, PictureSheet
from contrasweep.tuning.transfer.images import ImageSet
from contrasweep.tuning.transfer.projections import projected

MOST_POINTS: Final = 1_000
"""Images on a map: more hide each other, and their pictures make the page large."""

PICTURE: Final = 32
"""The largest side of a picture, in pixels."""


def rows_on_map(images: int) -> Tensor:
    """Return the rows that a map shows: all, or `MOST_POINTS` drawn with a fixed seed. int64, ascending."""
    order = torch.randperm(images, generator=torch_generator("feature map", images))
    return order[:MOST_POINTS].sort().values


def pictures_of(inputs: Tensor) -> Tensor:
    """Return small pictures, uint8 `(B, C, T, T)`, of images `(B, C, S, S)` in 0..1."""
    size = min(PICTURE, inputs.shape[-1])
    if size < inputs.shape[-1] and len(inputs):
        inputs = functional.interpolate(inputs, size=(size, size), mode="area")
    return (inputs.clamp(0, 1) * 255).round().to(torch.uint8).cpu()


class MapPoints:
    """Collects the features and the pictures of a map while all images pass by, a part at a time.

    Args:
        images: how many there are.
    """

    def __init__(self, images: int) -> None:
        self.rows = rows_on_map(images)
        self._features: list[Tensor] = []
        self._pictures: list[Tensor] = []

    def take(self, start: int, inputs: Tensor, features: Tensor) -> None:
        """Keep those of a part of the images that are on the map.

        Args:
            start: the row of the first image of the part.
            inputs: `(B, C, S, S)` in 0..1.
            features: `(B, D)`.
        """
        here = self.rows[(self.rows >= start) & (self.rows < start + len(features))]
        own = (here - start).to(features.device)
        self._features.append(features[own].float().cpu())
        self._pictures.append(pictures_of(inputs[own]))

    @property
    def features(self) -> Tensor:
        """Their features `(P, D)`."""
        return torch.cat(self._features)

    @property
    def pictures(self) -> Tensor:
        """Their pictures: uint8 `(P, C, T, T)`."""
        return torch.cat(self._pictures)


def feature_map(
    images: ImageSet, pictures: Tensor, features: Mapping[str, Tensor], method: str
) -> FeatureMap:
    """Return the map of images by their features.

    Args:
        images: the P images.
        pictures: uint8 `(P, C, T, T)`.
        features: `(P, D)` by the title of their panel.
        method: how they are placed, among `projections.PROJECTIONS`.

    Raises:
        InputError: there are too few images for the method.
    """
    panels = []
    for title, own in features.items():
        placed = projected(own, method)
        pairs = [(across, up) for across, up in placed.points.tolist()]
        panels.append(Panel(title, pairs, placed.note))
    title = f"Map of {counted(len(images), 'image')} of {images.source}"
    return FeatureMap(title, images.names, panels, _colourings(images), _sheet(pictures))


def _colourings(images: ImageSet) -> list[Colouring]:
    """Return the class first, then what else is known of the images."""
    found = [Colouring("class", images.labels, images.classes)]
    if images.bias is not None:
        names = [str(number) for number in range(max(images.bias) + 1)]
        found.append(Colouring("bias", images.bias, names))
    if images.background is not None:
        colours = list(dict.fromkeys(images.background))
        place = {colour: number for number, colour in enumerate(colours)}
        own = [place[colour] for colour in images.background]
        found.append(Colouring("background colour", own, colours=colours))
    return found


def _sheet(pictures: Tensor) -> PictureSheet:
    """Return all pictures side by side in one file: small ones exactly (PNG), others as JPEG."""
    from PIL import Image

    count, channels, size, _ = pictures.shape
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    padded = functional.pad(pictures, (0, 0, 0, 0, 0, 0, 0, rows * columns - count))
    grid = padded.view(rows, columns, channels, size, size).permute(0, 3, 1, 4, 2)
    pixels = grid.reshape(rows * size, columns * size, channels)
    image = Image.fromarray((pixels[:, :, 0] if channels == 1 else pixels).contiguous().numpy())
    file = io.BytesIO()
    kind = "png" if size < PICTURE else "jpeg"
    image.save(file, format=kind)
    return PictureSheet(file.getvalue(), kind, columns, size)
