"""Several seeds in one line: mean and sample standard deviation, with the number of runs beside them."""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    """`std` is the sample standard deviation (n - 1); of a single run there is none."""

    mean: float
    std: float | None
    n: int


def summarise(values: Iterable[float | None]) -> Summary | None:
    """Return the summary of the values that are numbers; None if there are none."""
    numbers = [value for value in values if value is not None and math.isfinite(value)]
    if not numbers:
        return None
    std = statistics.stdev(numbers) if len(numbers) > 1 else None
    return Summary(statistics.fmean(numbers), std, len(numbers))
