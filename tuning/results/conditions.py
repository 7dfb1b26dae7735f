"""Conditions on a selection: `val.colour_mse>=2000` keeps the trials whose metric is large enough."""

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from contrasweep.tuning.errors import InputError, unknown_name

COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_FORM = re.compile(r"\s*([\w.-]+?)\s*(>=|<=|>|<)\s*(\S+)\s*")


@dataclass(frozen=True)
class Condition:
    """A metric, a comparison and a number."""

    metric: str
    comparison: str
    bound: float

    def holds(self, value: float) -> bool:
        """Whether a trial whose metric has this value is kept."""
        return COMPARISONS[self.comparison](value, self.bound)

    def __str__(self) -> str:
        return f"{self.metric} {self.comparison} {self.bound:g}"


def parse_condition(text: str, metrics: Iterable[str]) -> Condition:
    """Return the condition that `text` states on one of a study's `metrics` (`val.` may be left out).

    Raises:
        InputError: it is no condition, or there is no such metric (with the nearest name).
    """
    found = _FORM.fullmatch(text)
    bound = math.nan if found is None else _number(found[3])
    if found is None or math.isnan(bound):
        raise InputError(f"--where takes METRIC>=NUMBER (or <=, >, <), given {text!r}")
    known = list(metrics)
    for name in (found[1], f"val.{found[1]}"):
        if name in known:
            return Condition(name, found[2], bound)
    raise unknown_name("metric", found[1], known)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
