"""Maps of images: points in the plane, coloured by class and more, with a picture of each image.

They are drawn by a script of the page's own, not by plotly: a point shows its picture, and several panels
with the same images light up together. Nothing here computes features.
"""

import base64
import colorsys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from contrasweep.tuning.reports.style import COLOURS, GREY

PALETTE: Final = (*COLOURS[:-1], "#8A7F00")
"""The colours of figures for up to seven values, the yellow darkened for white pages."""

STEPS: Final = 1_000
"""Places along each side of a map: more than a screen has pixels."""


@dataclass(frozen=True)
class Colouring:
    """What the colour of a point says.

    Attributes:
        name: what it is, as "class".
        values: the value of each point; None where it is not known.
        names: the names of the values 0, 1, and so on.
        colours: the colours of the values as `#RRGGBB`; None: colours that tell the values apart. With
            colours and no names, a value is a colour, and there is no legend.
    """

    name: str
    values: Sequence[int | None]
    names: Sequence[str] = ()
    colours: Sequence[str] | None = None


@dataclass(frozen=True)
class Panel:
    """One placing of the images.

    Attributes:
        title: whose features they are.
        points: across and up, in 0..1, one pair an image.
        note: what the directions are; empty where they have no meaning.
    """

    title: str
    points: Sequence[tuple[float, float]]
    note: str = ""


@dataclass(frozen=True)
class PictureSheet:
    """Small pictures of all images in one image file, row by row.

    Attributes:
        content: the file.
        kind: its type: `png` or `jpeg`.
        columns: pictures in a row.
        side: height and width of a picture in pixels.
    """

    content: bytes
    kind: str
    columns: int
    side: int

    @property
    def url(self) -> str:
        """The file as a URL that needs no network."""
        return f"data:image/{self.kind};base64,{base64.b64encode(self.content).decode()}"


@dataclass(frozen=True)
class FeatureMap:
    """The same images placed by one encoder or several.

    Attributes:
        title: what a reader who cannot see it is told.
        names: what each image is called.
        panels: the placings, side by side.
        colourings: the first is shown; a reader can choose another.
        sheet: the pictures.
    """

    title: str
    names: Sequence[str]
    panels: Sequence[Panel]
    colourings: Sequence[Colouring]
    sheet: PictureSheet


def map_view(name: str, drawn: FeatureMap) -> dict[str, Any]:
    """Return what the page's template shows of a map; `name` is its id there."""
    return {
        "id": name,
        "title": drawn.title,
        "panels": [
            {"title": panel.title, "note": panel.note, "alt": f"{drawn.title}: {panel.title.lower()}"}
            for panel in drawn.panels
        ],
        "colourings": [colouring.name for colouring in drawn.colourings],
        "content": {
            "names": list(drawn.names),
            # Upwards on a map is downwards on a screen.
            "panels": [
                [round(STEPS * part) for x, y in panel.points for part in (x, 1 - y)]
                for panel in drawn.panels
            ],
            "colourings": [_colouring_view(colouring) for colouring in drawn.colourings],
            "columns": drawn.sheet.columns,
            "side": drawn.sheet.side,
            "sheet": drawn.sheet.url,
        },
    }


def distinct_colours(count: int) -> list[str]:
    """Return `count` colours that differ: the palette, or hues around the circle."""
    if count <= len(PALETTE):
        return list(PALETTE[:count])
    # Every other hue is darker, so that neighbours differ.
    shades = [colorsys.hls_to_rgb(n / count, 0.42 if n % 2 else 0.58, 0.75) for n in range(count)]
    return ["#" + "".join(f"{round(255 * part):02X}" for part in shade) for shade in shades]


def _colouring_view(colouring: Colouring) -> dict[str, Any]:
    """Number the values that occur, so that the legend has no others; unknown ones come last."""
    present = sorted({value for value in colouring.values if value is not None})
    if colouring.colours is None:
        colours = distinct_colours(len(present))
    else:
        colours = [colouring.colours[value] for value in present]
    names = [colouring.names[value] for value in present] if colouring.names else []
    place = {value: number for number, value in enumerate(present)}
    values = [len(present) if value is None else place[value] for value in colouring.values]
    if None in colouring.values:
        colours.append(GREY)
        names.append("not known")
    return {"name": colouring.name, "values": values, "names": names, "colours": colours}
