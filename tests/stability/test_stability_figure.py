"""The figure of claims: its numbers are readable on their grounds."""

import numpy as np
import pytest
from matplotlib.colors import LinearSegmentedColormap, to_rgb

from contrasweep.tuning.stability.figure import CONTRARY, HOLDS, UNDECIDED, ink_on


def luminance(colour: object) -> float:
    """Relative luminance, WCAG 2.2."""
    parts = np.array(to_rgb(colour))  # type: ignore[arg-type]
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("chance", range(0, 101, 2))
def test_a_number_stands_out_from_its_ground(chance: int) -> None:
    ground = LinearSegmentedColormap.from_list("claims", [CONTRARY, UNDECIDED, HOLDS])(chance / 100)
    dark, light = sorted((luminance(ground[:3]), luminance(ink_on(chance))))
    assert (light + 0.05) / (dark + 0.05) >= 4.5, "WCAG 2.2, level AA"
