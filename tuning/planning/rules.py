"""The rules of a search as users give them; the store keeps them resolved, as a `SearchRecord`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from contrasweep.search_spaces import Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Value
from contrasweep.tuning.limits import check_count
from contrasweep.tuning.planning.halving import USUAL_ETA, Halving
from contrasweep.tuning.planning.stop_when import parse_stop_when


@dataclass(frozen=True)
class SearchRules:
    """The rules of a search in the words of `plan_sweep`, which describes them; None: it was not given.

    Raises:
        InputError: a number of `halving` is too small or too large, or two numbers of epochs are given.
    """

    trials: int | None = None
    epochs: int | None = None
    values: Mapping[str, Value] = field(default_factory=dict)
    space: Space | None = None
    sampler: str | None = None
    grid_points: int | None = None
    scheduler: str | None = None
    metric: str | None = None
    asha_metric: str | None = None
    eta: int | None = None
    grace: int | None = None
    seed: int | None = None
    seeds: int | None = None
    keep: Sequence[str] | None = None
    warm_start: Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Refuse what no scheduler takes, whether the rules are those of a new study or of a resumed one."""
        self.halving()
        if self.epochs is not None and self.values.get("epochs", self.epochs) != self.epochs:
            raise InputError(f"epochs is given twice: {self.epochs} and {self.values['epochs']}")

    def halving(self) -> Halving:
        """Return how `asha` is to compare trials."""
        return Halving(USUAL_ETA if self.eta is None else self.eta, self.grace)

    def settings(self) -> dict[str, Value]:
        """Return the settings that hold in every trial, `epochs` among them."""
        return {**self.values, **({} if self.epochs is None else {"epochs": self.epochs})}

    def given(self) -> dict[str, Any]:
        """Return the rules that were given, as arguments of `plan_sweep`."""
        return _given(self)


@dataclass(frozen=True)
class RunningRules:
    """The rules that a study may be given anew when it is resumed, in the words of `plan_sweep`, as above.

    Raises:
        InputError: a negative or huge number of failures or of encoders to keep, no time, or a condition that
            cannot be read.
    """

    max_failures: int | None = None
    trial_timeout: float | None = None
    budget: float | None = None
    stop_when: str | None = None
    keep_weights: int | None = None
    storage: str | None = None

    def __post_init__(self) -> None:
        """Refuse what no trial could keep, before any work."""
        check_count("max-failures", self.max_failures, least=0)
        for what, seconds in (("trial-timeout", self.trial_timeout), ("budget", self.budget)):
            if seconds is not None and not 0 < seconds < math.inf:
                raise InputError(f"{what} must be above 0 seconds, given {seconds:g}")
        if self.stop_when is not None:
            parse_stop_when(self.stop_when)
        check_count("keep-weights", self.keep_weights, least=0)

    def given(self) -> dict[str, Any]:
        """Return the rules that were given, as arguments of `plan_sweep` and fields of a `SearchRecord`."""
        return _given(self)


def _given(rules: SearchRules | RunningRules) -> dict[str, Any]:
    held = {one.name: getattr(rules, one.name) for one in fields(rules)}
    return {name: value for name, value in held.items() if value is not None}
