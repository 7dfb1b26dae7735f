"""A study's hyperparameters as axes of a box: numbers in units of the search, categories as codes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from contrasweep.search_spaces import Choice, Range, Scalar, Space

Floats = NDArray[np.float64]

GRID = 32
"""Cells into which a numeric axis is cut where a curve over it is drawn."""


@dataclass(frozen=True)
class Axis:
    """One searched parameter. Its *unit* is what a random search draws uniformly from.

    A number's unit runs from 0 to 1, in the logarithm where the search was in the logarithm; a whole number
    has a cell of it, as wide as the share of draws it gets. A category's unit is its index among `choices`.

    Attributes:
        name: as in the space.
        low: lower end, in the parameter's own scale (numbers only).
        high: upper end.
        log: whether the search was uniform in the logarithm.
        integer: whether only whole numbers occur.
        choices: the categories; empty for a number.
        default: what the first trial runs.
        when: the parents' values under which it is active; only parents that are searched themselves.
    """

    name: str
    low: float
    high: float
    log: bool
    integer: bool
    choices: tuple[Scalar, ...]
    default: Scalar
    when: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)

    @property
    def is_category(self) -> bool:
        """Whether its values have no order."""
        return bool(self.choices)

    @cached_property
    def grid(self) -> Floats:
        """Units at which curves are evaluated: every category or whole number, or `GRID` cells' midpoints."""
        if self.is_category:
            return np.arange(len(self.choices), dtype=np.float64)
        if self.integer and self.high - self.low < GRID:
            return self.to_unit(np.arange(self.low, self.high + 1))
        return (np.arange(GRID) + 0.5) / GRID

    @cached_property
    def weights(self) -> Floats:
        """The share of random draws that each entry of `grid` stands for; they sum to 1."""
        if self.integer and len(self.grid) < GRID:
            edges = self._scaled(np.arange(self.low, self.high + 2) - 0.5)
            return np.asarray(np.diff((edges - edges[0]) / (edges[-1] - edges[0])))
        return np.full(len(self.grid), 1 / len(self.grid))

    def to_unit(self, values: Floats) -> Floats:
        """Return numbers in units, clipped to 0..1; NaN (inactive) stays NaN."""
        ends = self._scaled(np.array([self.low, self.high]) + self._margin)
        scaled = self._scaled(np.asarray(values, dtype=float))
        return np.asarray(np.clip((scaled - ends[0]) / (ends[1] - ends[0]), 0, 1), dtype=np.float64)

    def codes(self, values: Sequence[Scalar | None]) -> Floats:
        """Return values in units, or as indices of categories; None, and what is no choice, becomes NaN."""
        if not self.is_category:
            return self.to_unit(np.array([math.nan if v is None else float(v) for v in values]))
        index = {choice: code for code, choice in enumerate(self.choices)}
        return np.array([math.nan if v is None else index.get(v, math.nan) for v in values], dtype=float)

    def value(self, code: float) -> Scalar:
        """Return the value, in the parameter's own scale, at a unit or category index."""
        if self.is_category:
            return self.choices[round(code)]
        low, high = self._scaled(np.array([self.low, self.high]) + self._margin)
        scaled = low + code * (high - low)
        value = math.exp(scaled) if self.log else float(scaled)
        if self.integer:
            return int(min(max(round(value), self.low), self.high))
        return min(max(value, self.low), self.high)

    def label(self, code: float) -> str:
        """Return the value at a unit as text, three significant digits."""
        value = self.value(code)
        return f"{value:.3g}" if isinstance(value, float) else str(value)

    @property
    def _margin(self) -> Floats:
        return np.array([-0.5, 0.5]) if self.integer else np.zeros(2)

    def _scaled(self, values: Floats) -> Floats:
        return np.asarray(np.log(values) if self.log else values)


@dataclass(frozen=True)
class Stratum:
    """One way to set the parameters on which others depend: their codes, what is active then, how often
    a random draw lands here.
    """

    weight: float
    fixed: Mapping[str, float]
    active: frozenset[str]

    def meets(self, condition: Mapping[str, float]) -> bool:
        """Whether it lies within a condition (parent to code)."""
        return all(self.fixed.get(name) == code for name, code in condition.items())


def axes_of(space: Space) -> tuple[Axis, ...]:
    """Return the axes of a space's searched parameters, parents first; those never active are left out."""
    names = {p.name for p in space.searched}
    possible = set().union(*(space.active(values) for values in _branches(space)))
    return tuple(_axis(p, names) for p in space.searched if p.name in possible)


def strata_of(space: Space) -> tuple[Stratum, ...]:
    """Return the strata of a space; their weights sum to 1. Without conditions there is one."""
    axes = {axis.name: axis for axis in axes_of(space)}
    found = []
    for values in _branches(space):
        codes = {name: float(axes[name].codes([value])[0]) for name, value in values.items()}
        weight = math.prod(_share(axes[name], code) for name, code in codes.items())
        found.append(Stratum(weight, codes, frozenset(space.active(values)) & set(axes)))
    return tuple(found)


def _share(axis: Axis, code: float) -> float:
    return float(axis.weights[int(np.argmin(np.abs(axis.grid - code)))])


def _branches(space: Space) -> Iterator[dict[str, Scalar]]:
    """Yield every way to set the searched parameters that others depend on."""
    parents = {parent for p in space.searched for parent in p.when}
    branches: list[dict[str, Scalar]] = [{}]
    for parameter in space.searched:
        if parameter.name not in parents:
            continue
        grown = []
        for values in branches:
            is_active = parameter.name in space.active(values)
            grown += [{**values, parameter.name: v} for v in parameter.values()] if is_active else [values]
        branches = grown
    yield from branches


def _axis(parameter: Choice | Range, searched: set[str]) -> Axis:
    when = {parent: values for parent, values in parameter.when.items() if parent in searched}
    if isinstance(parameter, Choice):
        return Axis(parameter.name, 0, 1, False, False, parameter.choices, parameter.default, when)
    low, high = float(parameter.low), float(parameter.high)
    return Axis(
        parameter.name, low, high, parameter.is_log, parameter.is_integer, (), parameter.default, when
    )


def complete_row(axes: tuple[Axis, ...], held: Mapping[str, float]) -> Floats:
    """Return a configuration in units, (axes,): `held`, else the default, NaN where inactive."""
    by_name = {axis.name: axis for axis in axes}
    found: dict[str, float] = {}
    for axis in axes:
        parents = {parent: found.get(parent, np.nan) for parent in axis.when}
        active = all(
            np.isfinite(parents[parent]) and by_name[parent].value(parents[parent]) in allowed
            for parent, allowed in axis.when.items()
        )
        given = held.get(axis.name, np.nan)
        default = float(axis.codes([axis.default])[0])
        found[axis.name] = (given if np.isfinite(given) else default) if active else np.nan
    return np.array([found[axis.name] for axis in axes])


def default_row(axes: tuple[Axis, ...]) -> Floats:
    """Return the defaults in units, (axes,)."""
    return complete_row(axes, {})


def changes(axes: tuple[Axis, ...], row: Floats, index: int) -> Floats:
    """Return `row` with one axis set to each entry of its grid, (grid, axes).

    Parameters that a change of their parent makes active take their defaults.
    """
    held = {axis.name: float(code) for axis, code in zip(axes, row, strict=True)}
    name = axes[index].name
    return np.stack([complete_row(axes, {**held, name: float(code)}) for code in axes[index].grid])


def values_of(axes: tuple[Axis, ...], row: Floats) -> dict[str, Scalar]:
    """Return a configuration's active values, in their own scales."""
    return {a.name: a.value(float(code)) for a, code in zip(axes, row, strict=True) if np.isfinite(code)}
