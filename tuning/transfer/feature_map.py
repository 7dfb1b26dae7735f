"""A map of features: their first two principal components as one page, with a picture of each image.

Shapes: P points, D features, C channels, T pixels a side of a picture.
"""

import base64
import colorsys
import io
import math
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import torch
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from torch import Tensor
from torch.nn import functional

from contrasweep.data import torch_generator
from contrasweep.tuning.transfer.encoders import GivenEncoder
from contrasweep.tuning.transfer.images import ImageSet

MOST_POINTS: Final = 2_000
"""Points on a map: more hide each other, and their pictures make the page large."""

PICTURE: Final = 32
"""The largest side of a picture, in pixels."""

PALETTE: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8A7F00")
"""Okabe and Ito's colours for up to seven classes, the yellow darkened for white pages."""

GREY: Final = "#8C8C8C"


@dataclass(frozen=True, eq=False)
class MapPoints:
    """The images that a map shows: all, or `MOST_POINTS` drawn from them with a fixed seed."""

    images: int
    _rows: list[int] = field(default_factory=list)
    _features: list[Tensor] = field(default_factory=list)
    _pictures: list[Tensor] = field(default_factory=list)

    def take(self, start: int, inputs: Tensor, features: Tensor) -> None:
        """Keep those of a part of the images that are on the map.

        Args:
            start: the row of the first image of the part.
            inputs: `(B, C, S, S)` in 0..1.
            features: `(B, D)`.
        """
        on_map = self._chosen
        here = on_map[(on_map >= start) & (on_map < start + len(features))]
        own = (here - start).to(features.device)
        self._rows.extend(here.tolist())
        self._features.append(features[own].float().cpu())
        pictures, size = inputs[own], min(PICTURE, inputs.shape[-1])
        if size < pictures.shape[-1] and len(own):
            pictures = functional.interpolate(pictures, size=(size, size), mode="area")
        self._pictures.append((pictures.clamp(0, 1) * 255).round().to(torch.uint8).cpu())

    @property
    def rows(self) -> list[int]:
        """The rows of the images that were taken."""
        return self._rows

    @property
    def features(self) -> Tensor:
        """Their features `(P, D)`."""
        return torch.cat(self._features)

    @property
    def pictures(self) -> Tensor:
        """Their pictures: uint8 `(P, C, T, T)`."""
        return torch.cat(self._pictures)

    @property
    def _chosen(self) -> Tensor:
        order = torch.randperm(self.images, generator=torch_generator("feature map", self.images))
        return order[:MOST_POINTS].sort().values


def principal_components(features: Tensor) -> tuple[Tensor, tuple[float, float]]:
    """Return the first two principal components `(P, 2)` of `features` `(P, D)`, and their share of variance.

    Each component is turned so that its largest loading is positive: the same features give the same map.
    """
    centred = features.double() - features.double().mean(dim=0)
    _, values, axes = torch.linalg.svd(centred, full_matrices=False)
    axes, variance = axes[:2], values.square()
    turned = axes * axes.gather(1, axes.abs().argmax(dim=1, keepdim=True)).sign()
    points = centred @ turned.T
    points = functional.pad(points, (0, 2 - points.shape[1]))
    shares = [*(variance / variance.sum().clamp(min=1e-300)).tolist(), 0.0, 0.0]
    return points, (shares[0], shares[1])


def map_page(points: MapPoints, images: ImageSet, encoder: GivenEncoder) -> str:
    """Return the map as one HTML page that opens offline: points by class, a picture under the pointer."""
    placed, shares = principal_components(points.features)
    low, high = placed.min(dim=0).values, placed.max(dim=0).values
    unit = ((placed - low) / (high - low).clamp(min=1e-12)).tolist()
    labels = [images.labels[row] for row in points.rows]
    present = sorted({label for label in labels if label is not None})
    pictures, columns = points.pictures, math.ceil(math.sqrt(len(points.rows)))
    content: dict[str, Any] = {
        "points": [
            [round(x, 4), round(1 - y, 4), -1 if label is None else present.index(label), images.names[row]]
            for (x, y), label, row in zip(unit, labels, points.rows, strict=True)
        ],
        "classes": [images.classes[label] for label in present],
        "colours": [*_colours(len(present)), GREY],
        "columns": columns,
        "picture": pictures.shape[-1],
    }
    return _template().render(
        title=f"Features of {images.source}",
        encoder=encoder.place,
        shown=len(points.rows),
        images=len(images),
        shares=[f"{100 * share:.1f} %" for share in shares],
        content=content,
        sheet=_sheet(pictures, columns),
    )


def _colours(count: int) -> list[str]:
    if count <= len(PALETTE):
        return list(PALETTE[:count])
    # Hues around the circle; every other one is darker, so that neighbours differ.
    shades = [colorsys.hls_to_rgb(n / count, 0.42 if n % 2 else 0.58, 0.75) for n in range(count)]
    return ["#" + "".join(f"{round(255 * part):02X}" for part in shade) for shade in shades]


def _sheet(pictures: Tensor, columns: int) -> str:
    """Return all pictures side by side as the URL of one image: small ones exactly (PNG), others as JPEG."""
    from PIL import Image

    count, channels, size, _ = pictures.shape
    rows = math.ceil(count / columns)
    padded = functional.pad(pictures, (0, 0, 0, 0, 0, 0, 0, rows * columns - count))
    grid = padded.view(rows, columns, channels, size, size).permute(0, 3, 1, 4, 2)
    pixels = grid.reshape(rows * size, columns * size, channels)
    image = Image.fromarray((pixels[:, :, 0] if channels == 1 else pixels).contiguous().numpy())
    file = io.BytesIO()
    kind = "png" if size < PICTURE else "jpeg"
    image.save(file, format=kind)
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"


@cache
def _template() -> Template:
    loader = PackageLoader("contrasweep.tuning.transfer")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.get_template("map.html.j2")
