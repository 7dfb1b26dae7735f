"""Metrics that plug-ins add: scores of an encoder's features. Nothing here imports torch; a plug-in does."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from contrasweep.names import check_arguments
from contrasweep.plugins import Registry
from contrasweep.tuning.methods.declaration import Need
from contrasweep.tuning.methods.metrics import MEASURES

FEATURES: Final = "features"

IMAGE_ARGUMENTS: Final[Mapping[str, Need]] = MappingProxyType(
    {"labels": "labels", "bias": "bias", "condition": "condition"}
)
"""The arguments that a score may take besides the features, and what each needs of the data."""

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_OUR_PREFIXES: Final = ("ridge_", "report_", "untrained_", "classifier_")


def check_metric_name(name: str) -> None:
    """Raise ValueError unless a plug-in's metric may have this name."""
    if _NAME.fullmatch(name) is None:
        allowed = "small letters, digits and single underscores, beginning with a letter"
        raise ValueError(f"the name of a metric has {allowed}; given {name!r}")
    if name in MEASURES or name.startswith(_OUR_PREFIXES):
        raise ValueError(f"the name {name!r} is one of contrasweep's own: take another one")


@dataclass(frozen=True)
class Metric:
    """A score of an encoder on held-out images. The larger, the better: of an error, return the negative.

    Attributes:
        name: what users type, in small letters, digits and underscores; the store keeps `metric.val.NAME`.
        summary: what it measures, in a clause.
        score: takes the encoder's `features` `(N, D)` of N whole held-out images, and those of `labels`
            `(N,)` (or `(N, c)` in a multi-label set), `bias` `(N,)` and `condition` `(N, Z)` that its
            arguments name, all on one device. Returns a finite number.

    Raises:
        ValueError: the name is not allowed, or the score takes something else.
    """

    name: str
    summary: str
    score: Callable[..., Any]

    def __post_init__(self) -> None:
        check_metric_name(self.name)
        first, *others = inspect.signature(self.score).parameters or [""]
        if first != FEATURES:
            raise ValueError(f"the first argument of its score must be features, given {first!r}")
        check_arguments("its score", others, IMAGE_ARGUMENTS, "image")

    @property
    def takes(self) -> tuple[str, ...]:
        """The arguments of the score besides the features."""
        return tuple(inspect.signature(self.score).parameters)[1:]


ADDED_METRICS: Mapping[str, Metric] = Registry("metric", list, (Metric,))
"""The metrics of plug-ins by their names."""
