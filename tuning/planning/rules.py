"""The rules of a search as users give them; the store keeps them resolved, as a `SearchRecord`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from contrasweep.search_spaces import Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Value
from contrasweep.tuning.planning.halving import USUAL_ETA, Halving


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
        held = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in held.items() if value is not None}
