"""The allowed values of a hyperparameter: a number within bounds, or one of a few words.

Losses state these rules in their annotations, methods declare their own settings by them. Nothing here
imports torch, so that what a user types is checked before torch is imported.
"""

import math
from dataclasses import dataclass
from numbers import Integral, Real

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
        # NumPy's scalars are numbers of these kinds too.
        if (
            not isinstance(value, Integral if self.whole else Real)
            or isinstance(value, bool)
            or not (isinstance(value, Integral) or math.isfinite(value))
        ):
            kind = "whole" if self.whole else "finite"
            raise ValueError(f"{name} must be a {kind} number, given {value!r}")
        number = value if isinstance(value, int) else float(value)
        if self.above is not None and number <= self.above:
            raise ValueError(f"{name} must be above {self.above:g}, given {value!r}")
        if self.at_least is not None and number < self.at_least:
            raise ValueError(f"{name} must be at least {self.at_least:g}, given {value!r}")
        if self.below is not None and number >= self.below:
            raise ValueError(f"{name} must be below {self.below:g}, given {value!r}")
        if self.at_most is not None and number > self.at_most:
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
