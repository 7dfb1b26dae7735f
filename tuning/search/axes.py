"""A study's hyperparameters as the axes of a box, and configurations as points in it."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from contrasweep.search_spaces import Choice, Range, Scalar, Space
from contrasweep.tuning.statistics import Floats

GRID = 32
"""The number of points at which a curve over a numeric axis is evaluated."""

INACTIVE: Final = -0.25
"""The place of an inactive number on its axis: outside 0..1, so that a model can tell it apart."""

DIGITS: Final = 9
"""Values of one configuration agree in so many significant digits: they pass through YAML and units."""

ConfigurationKey = tuple[tuple[str, str], ...]
"""What is equal for equal configurations, see `configuration_key`."""


@dataclass(frozen=True)
class Axis:
    """One searched parameter. Its *unit* is what a random search draws uniformly from.

    A number's unit runs from 0 to 1 (see `Scale`). A category's unit is its index among `choices`.

    Attributes:
        parameter: the entry of the study's space.
        when: the parents' values under which it is active; only searched parents are listed.
    """

    parameter: Choice | Range
    when: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The parameter's name."""
        return self.parameter.name

    @property
    def default(self) -> Scalar:
        """The parameter's default."""
        return self.parameter.default

    @property
    def choices(self) -> tuple[Scalar, ...]:
        """The categories; empty for a number."""
        return self.parameter.choices if isinstance(self.parameter, Choice) else ()

    @property
    def is_category(self) -> bool:
        """Whether its values have no order."""
        return isinstance(self.parameter, Choice)

    @property
    def is_integer(self) -> bool:
        """Whether it is a number and only whole numbers occur."""
        return isinstance(self.parameter, Range) and self.parameter.is_integer

    @property
    def is_log(self) -> bool:
        """Whether it is a number and the search was uniform in its logarithm."""
        return isinstance(self.parameter, Range) and self.parameter.is_log

    @property
    def low(self) -> float:
        """Lower end of a number's range, in its own scale; NaN for a category."""
        return float(self.parameter.low) if isinstance(self.parameter, Range) else math.nan

    @property
    def high(self) -> float:
        """Upper end of a number's range; NaN for a category."""
        return float(self.parameter.high) if isinstance(self.parameter, Range) else math.nan

    @cached_property
    def grid(self) -> Floats:
        """Units at which curves are evaluated: categories, whole numbers, or the middles of `GRID` cells."""
        if self._counted is not None:
            return self.to_unit(self._counted)
        if self.is_category:
            return np.arange(len(self.choices), dtype=np.float64)
        return (np.arange(GRID) + 0.5) / GRID

    @cached_property
    def weights(self) -> Floats:
        """The share of random draws nearest to each entry of `grid`; the shares sum to 1."""
        if self._counted is not None:
            edges = np.append(self._counted - 0.5, self.high + 0.5)
            return np.asarray(np.diff(self.to_unit(edges)))
        return np.full(len(self.grid), 1 / len(self.grid))

    def share(self, value: Scalar) -> float:
        """Return the share of random draws of a category or a whole number."""
        if self.is_category:
            return 1 / len(self.choices)
        below, above = self.to_unit([float(value) - 0.5, float(value) + 0.5])
        return float(above - below)

    @property
    def has_whole_grid(self) -> bool:
        """Whether `grid` has an entry for every value."""
        return self.is_category or self._counted is not None

    @property
    def _counted(self) -> Floats | None:
        """The whole numbers of the range, if each has its own entry of the grid."""
        few = self.is_integer and self.high - self.low < GRID
        return np.arange(self.low, self.high + 1) if few else None

    def to_unit(self, values: Iterable[float]) -> Floats:
        """Return numbers in units, clipped to 0..1; NaN (inactive) stays NaN."""
        assert isinstance(self.parameter, Range), "categories have codes, not units"
        units = [self.parameter.scale.unit(value) for value in values]
        return np.clip(np.array(units, dtype=np.float64), 0, 1)

    def codes(self, values: Iterable[Scalar | None]) -> Floats:
        """Return numbers in units, and categories as indices; None and unknown categories become NaN."""
        if not self.is_category:
            return self.to_unit(math.nan if v is None else float(v) for v in values)
        index = {choice: code for code, choice in enumerate(self.choices)}
        return np.array([math.nan if v is None else index.get(v, math.nan) for v in values], dtype=float)

    def entry(self, code: float) -> int:
        """Return the index of the entry of `grid` nearest to a unit or category index."""
        return int(np.argmin(np.abs(self.grid - code)))

    def value(self, code: float) -> Scalar:
        """Return the parameter's value at a unit or category index."""
        if isinstance(self.parameter, Choice):
            return self.parameter.choices[round(code)]
        return self.parameter.scale.value(float(code))

    def rounded(self, codes: Floats) -> Floats:
        """Return a number's units where they stand for values: those of whole numbers are rounded."""
        if not isinstance(self.parameter, Range) or not self.is_integer:
            return codes
        scale = self.parameter.scale
        return self.to_unit(math.nan if math.isnan(code) else scale.value(float(code)) for code in codes)

    def label(self, code: float) -> str:
        """Return the value at a unit as text, three significant digits."""
        value = self.value(code)
        return f"{value:.3g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Stratum:
    """One way to set the parameters that others depend on.

    Attributes:
        weight: the share of random draws with these settings.
        fixed: the codes of those parameters, by name.
        active: the names of all parameters that are active then.
    """

    weight: float
    fixed: Mapping[str, float]
    active: frozenset[str]

    def meets(self, condition: Mapping[str, float]) -> bool:
        """Return whether the stratum meets a condition (parent to code)."""
        return all(self.fixed.get(name) == code for name, code in condition.items())


def axes_of(space: Space) -> tuple[Axis, ...]:
    """Return the axes of a space's searched parameters, parents first; those never active are left out."""
    names = {p.name for p in space.searched}
    possible = set().union(*(space.active(values) for values in _branches(space)))
    return tuple(
        Axis(p, {parent: values for parent, values in p.when.items() if parent in names})
        for p in space.searched
        if p.name in possible
    )


def strata_of(space: Space) -> tuple[Stratum, ...]:
    """Return the strata of a space; their weights sum to 1. A space without conditions has one stratum."""
    axes = {axis.name: axis for axis in axes_of(space)}
    found = []
    for values in _branches(space):
        codes = {name: float(axes[name].codes([value])[0]) for name, value in values.items()}
        weight = math.prod(axes[name].share(value) for name, value in values.items())
        found.append(Stratum(weight, codes, frozenset(space.active(values)) & set(axes)))
    return tuple(found)


def _branches(space: Space) -> Iterator[dict[str, Scalar]]:
    """Yield each way to set the searched parameters that others depend on."""
    parents = {parent for p in space.searched for parent in p.when}
    branches: list[dict[str, Scalar]] = [{}]
    for parameter in (p for p in space.searched if p.name in parents):
        grown = []
        for values in branches:
            is_active = parameter.name in space.active(values)
            grown += [{**values, parameter.name: v} for v in parameter.values()] if is_active else [values]
        branches = grown
    yield from branches


def complete_row(axes: tuple[Axis, ...], held: Mapping[str, float]) -> Floats:
    """Return a configuration in units, (axes,): `held`, else defaults; NaN for inactive parameters."""
    codes: list[float] = []
    values: dict[str, Scalar] = {}
    for axis in axes:
        codes.append(np.nan)
        if all(values.get(parent) in allowed for parent, allowed in axis.when.items()):
            given = held.get(axis.name, np.nan)
            codes[-1] = given if np.isfinite(given) else float(axis.codes([axis.default])[0])
            values[axis.name] = axis.value(codes[-1])
    return np.array(codes)


def default_row(axes: tuple[Axis, ...]) -> Floats:
    """Return the defaults in units, (axes,)."""
    return complete_row(axes, {})


def changes(axes: tuple[Axis, ...], row: Floats, index: int) -> Floats:
    """Return `row` with one axis set to each entry of its grid, (grid, axes).

    A parameter that becomes active by a change of its parent takes its default.
    """
    held = {axis.name: float(code) for axis, code in zip(axes, row, strict=True)}
    name = axes[index].name
    return np.stack([complete_row(axes, {**held, name: float(code)}) for code in axes[index].grid])


def codes_of(axes: tuple[Axis, ...], configurations: Sequence[Mapping[str, Scalar | None]]) -> Floats:
    """Return configurations in units, (configurations, axes); NaN for missing and unknown values."""
    columns = [axis.codes([one.get(axis.name) for one in configurations]) for axis in axes]
    return np.stack(columns, axis=1) if columns else np.zeros((len(configurations), 0))


def configuration_key(values: Mapping[str, Scalar]) -> ConfigurationKey:
    """Return what is equal for equal configurations, by which analyses pair the trials of studies.

    Samplers compare exactly instead, see `SpaceSampler`.

    Args:
        values: the active values by name, in any order.
    """
    return tuple(sorted((name, _rounded(value)) for name, value in values.items()))


def _rounded(value: Scalar) -> str:
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else repr(value)


def values_of(axes: tuple[Axis, ...], row: Floats) -> dict[str, Scalar]:
    """Return the values of a configuration's active parameters."""
    return {a.name: a.value(float(code)) for a, code in zip(axes, row, strict=True) if np.isfinite(code)}


def design(axes: tuple[Axis, ...], codes: Floats) -> NDArray[np.float32]:
    """Return the columns that a model sees: a number's unit, and a column of 0 or 1 for each category."""
    columns = []
    for i, axis in enumerate(axes):
        if axis.is_category:
            columns += [codes[:, i] == code for code in range(len(axis.choices))]
        else:
            columns.append(np.where(np.isnan(codes[:, i]), INACTIVE, codes[:, i]))
    return np.stack(columns, axis=1).astype(np.float32)


def draw_codes(
    axes: tuple[Axis, ...], strata: tuple[Stratum, ...], count: int, rng: np.random.Generator
) -> Floats:
    """Draw `count` configurations as a random search does, in units, (count, axes)."""
    stratum = rng.choice(len(strata), size=count, p=np.array([s.weight for s in strata]))
    codes = np.stack([axis.grid[rng.choice(len(axis.grid), count, p=axis.weights)] for axis in axes], axis=1)
    for i, axis in enumerate(axes):
        if not axis.has_whole_grid:
            codes[:, i] = axis.rounded(rng.random(count))
        for number, one in enumerate(strata):
            rows = stratum == number
            if axis.name in one.fixed:
                codes[rows, i] = one.fixed[axis.name]
            elif axis.name not in one.active:
                codes[rows, i] = np.nan
    return codes
