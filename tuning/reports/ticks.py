"""The numbers along an axis: few enough for a phone, and round."""

import math
from typing import Final

MOST_TICKS: Final = 6
_SUPERSCRIPTS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def log_ticks(low: float, high: float) -> list[float]:
    """Return round numbers from `low` to `high`, both above 0, for a logarithmic axis: six at most."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        inside = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
        if len(inside) <= MOST_TICKS:
            return inside
    return inside[:: -(-len(inside) // MOST_TICKS)]


def linear_ticks(low: float, high: float) -> list[float]:
    """Return round numbers from `low` to `high` for a linear axis: six at most."""
    if high <= low:
        return [low]
    rough = (high - low) / (MOST_TICKS - 1)
    scale = 10.0 ** math.floor(math.log10(rough))
    step = next(s * scale for s in (1, 2, 5, 10) if s * scale >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def plain(value: object) -> str:
    """Return a tick as text: `0.01`, `1000`, `10⁵`, `3·10⁻⁴`; what is no number as it is."""
    if not isinstance(value, float) or value == 0 or 1e-3 <= abs(value) < 1e4:
        return f"{value:.4g}" if isinstance(value, float) else str(value)
    power = math.floor(math.log10(abs(value)) + 1e-9)
    factor = f"{value / 10.0**power:.3g}"
    return ("" if factor == "1" else f"{factor}·") + f"10{str(power).translate(_SUPERSCRIPTS)}"
