"""The allowed values of a hyperparameter: a number within bounds, or one of a few words.

Losses state these rules in their annotations, methods declare their own settings by them. Nothing here
imports torch, so that what a user types is checked before torch is imported.
"""

import math
from dataclasses import dataclass

from contrasweep.names import did_you_mean


@dataclass(frozen=True)
class Number:
    """A finite number within the given bounds; `whole` allows whole numbers only."""

    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    whole: bool = False

    def check(self, name: str, value: object) -> None:
        """Raise ValueError unless `value` is such a number; the message calls it `name`."""
        is_int = isinstance(value, int) and not isinstance(value, bool)
        if not (is_int or (isinstance(value, float) and math.isfinite(value) and not self.whole)):
            kind = "whole" if self.whole else "finite"
            raise ValueError(f"{name} must be a {kind} number, given {value!r}")
        assert isinstance(value, int | float)
        if self.above is not None and value <= self.above:
            raise ValueError(f"{name} must be above {self.above:g}, given {value!r}")
        if self.at_least is not None and value < self.at_least:
            raise ValueError(f"{name} must be at least {self.at_least:g}, given {value!r}")
        if self.below is not None and value >= self.below:
            raise ValueError(f"{name} must be below {self.below:g}, given {value!r}")
        if self.at_most is not None and value > self.at_most:
            raise ValueError(f"{name} must be at most {self.at_most:g}, given {value!r}")


@dataclass(frozen=True)
class OneOf:
    """One of a few words."""

    choices: tuple[str, ...]

    def check(self, name: str, value: object) -> None:
        """Raise ValueError, with the nearest word, unless `value` is one of them."""
        if value not in self.choices:
            hint = did_you_mean(str(value), self.choices)
            raise ValueError(f"unknown value of {name}: {value!r}.{hint} Known: {', '.join(self.choices)}.")


Rule = Number | OneOf
"""The allowed values of a hyperparameter."""
