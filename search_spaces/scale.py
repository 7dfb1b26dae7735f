"""The unit scale of a range: where a number lies between the ends, as a random search draws it."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Maps the numbers from `low` to `high` to units from 0 to 1, and back.

    A random search draws units uniformly. On a logarithmic scale (`low` above 0) equal steps in units are
    equal ratios of values. Every whole number, the two ends included, has its own cell of the scale: its unit
    is its position between `low` - 0.5 and `high` + 0.5.
    """

    low: float
    high: float
    is_log: bool = False
    is_integer: bool = False

    def unit(self, value: float) -> float:
        """Return the unit of a value: below 0 or above 1 beyond the ends, and NaN for NaN."""
        low, high = self._ends
        return (self._scaled(value) - low) / (high - low)

    def value(self, unit: float) -> float | int:
        """Return the value at a unit, rounded to a whole number if the range has only whole numbers.

        For a unit beyond the ends, it is the nearest end.
        """
        low, high = self._ends
        scaled = low + unit * (high - low)
        value = math.exp(scaled) if self.is_log else scaled
        if self.is_integer:
            return int(min(max(round(value), self.low), self.high))
        return min(max(value, float(self.low)), float(self.high))

    @property
    def _ends(self) -> tuple[float, float]:
        margin = 0.5 if self.is_integer else 0.0
        return self._scaled(self.low - margin), self._scaled(self.high + margin)

    def _scaled(self, value: float) -> float:
        if not self.is_log:
            return float(value)
        return -math.inf if value <= 0 else math.log(value)
