"""Conditions on the metrics of a trial, such as `val.colour_mse >= 200`."""

import math
import operator
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, Strict

from contrasweep.tuning.errors import InputError, unknown_name

COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_FORM: Final = re.compile(r"\s*([\w.-]+?)\s*(>=|<=|>|<)\s*(\S+)\s*")


class Condition(BaseModel):
    """A metric, a comparison and a number."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metric: Annotated[str, Field(min_length=1)]
    comparison: Literal[">=", "<=", ">", "<"]
    bound: Annotated[float, Strict(), Field(allow_inf_nan=False)]

    def holds(self, value: float | None) -> bool:
        """Whether a trial whose metric has this value is kept."""
        return value is not None and COMPARISONS[self.comparison](value, self.bound)

    def violation(self, value: float | None) -> float:
        """Return how far a value lies beyond the bound: above 0 where the condition does not hold.

        Where it holds, the larger the distance to the bound, the smaller (0 or less). A missing value is
        infinitely far beyond.
        """
        if value is None or math.isnan(value):
            return math.inf
        beyond = self.bound - value if self.comparison in (">=", ">") else value - self.bound
        return beyond if self.holds(value) else max(beyond, sys.float_info.min)

    def __str__(self) -> str:
        """Return the condition with all digits of its bound: it is a key, and part of printed commands."""
        return f"{self.metric} {self.comparison} {repr(self.bound).removesuffix('.0')}"


def all_hold(conditions: Iterable[Condition], score: Callable[[str], float | None]) -> bool:
    """Whether a trial keeps all conditions; `score` returns its value of a metric."""
    return all(this.holds(score(this.metric)) for this in conditions)


def can_all_hold(conditions: Iterable[Condition], smallest: float, largest: float) -> bool:
    """Return whether a score from `smallest` to `largest` keeps all conditions, which are on one metric."""
    lower, upper = [(smallest, False)], [(largest, False)]
    for this in conditions:
        side = lower if this.comparison in (">=", ">") else upper
        side.append((this.bound, this.comparison in (">", "<")))
    low, above = max(lower)
    high, below = min(upper, key=lambda bound: (bound[0], not bound[1]))
    return low < high or (low == high and not above and not below)


def broken_by(violations: Iterable[float]) -> float:
    """Return by how much a trial breaks all of its conditions together, each in the units of its metric."""
    return sum(max(0.0, violation) for violation in violations)


def in_words(conditions: Iterable[Condition]) -> str:
    """Return `val.colour_mse >= 200 and val.accuracy > 0.5`."""
    return " and ".join(map(str, conditions))


def appended(conditions: Iterable[Condition]) -> str:
    """Return `, val.colour_mse >= 200` for the end of a rule; nothing without conditions."""
    return "".join(f", {condition}" for condition in conditions)


def parse_condition(text: str, metrics: Iterable[str], option: str = "--where") -> Condition:
    """Return the condition that `text` states on one of a study's `metrics` (`val.` may be left out).

    Raises:
        InputError: the text is not a condition, or the metric is unknown (the message has the nearest name).
    """
    metric, comparison, bound = _parts(text, option)
    known = list(metrics)
    for name in (metric, f"val.{metric}"):
        if name in known:
            return Condition.model_validate({"metric": name, "comparison": comparison, "bound": bound})
    raise unknown_name("metric", metric, known)


def metrics_named(texts: Sequence[str], option: str) -> list[str]:
    """Return the metrics of conditions, as they are written.

    Raises:
        InputError: a text is not a condition.
    """
    return [_parts(text, option)[0] for text in texts]


def _parts(text: str, option: str) -> tuple[str, str, float]:
    """Return the metric, the comparison and the number of a condition."""
    found = _FORM.fullmatch(text)
    try:
        bound = math.nan if found is None else float(found[3])
    except ValueError:
        bound = math.nan
    if found is None or not math.isfinite(bound):
        raise InputError(f"{option} takes METRIC>=NUMBER (or <=, >, <), given {text!r}")
    return found[1], found[2], bound
