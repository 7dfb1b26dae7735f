"""Numbers as text, the same wherever a person reads them.

Scores that are fractions, such as accuracies, are printed as fractions: 0.9028, in tables, progress and pages
as in JSON, in the store and in conditions (`--where accuracy>=0.9`). The papers' tables are the exception:
they have the units in which the papers print.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contrasweep.tuning.statistics import Summary


def number_text(value: float, sign: str = "") -> str:
    """Return a number with four significant digits; from 10,000 on, the whole number.

    Args:
        value: the number.
        sign: "+" puts a sign before positive numbers too.
    """
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "-∞"}.get(value, "NaN")
    return f"{value:{sign},.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:{sign}.4g}"


def cell_text(value: object) -> str:
    """Return a cell's text: `number_text` for a float, a dash for None."""
    if value is None:
        return "-"
    return number_text(value) if isinstance(value, float) else str(value)


def mean_and_std(summary: Summary | None, sign: str = "") -> str | None:
    """Return `mean ± std`, both with as many decimals as show two digits of the deviation.

    Args:
        summary: of the values; a single one has no deviation, and None gives None.
        sign: as for `number_text`.
    """
    if summary is None:
        return None
    if summary.std is None:
        return number_text(summary.mean, sign)
    # Equal differences of floats differ in their last bits.
    if summary.std <= 1e-9 * abs(summary.mean):
        return f"{number_text(summary.mean, sign)} ± 0"
    decimals = max(0, 1 - math.floor(math.log10(summary.std)))
    return f"{summary.mean:{sign},.{decimals}f} ± {summary.std:,.{decimals}f}"


def interval_text(ends: tuple[float, float] | None, sign: str = "") -> str | None:
    """Return an interval as `low to high`, each end as `number_text` gives it; None for None."""
    return None if ends is None else " to ".join(number_text(end, sign) for end in ends)
