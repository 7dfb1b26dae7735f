"""Pools of configurations for several methods, paired: the n-th ones share the values of common parameters.

A Sobol sequence covers a space more evenly than independent draws. One scrambled sequence serves all methods:
its first dimensions are the common parameters, and each method has further ones for its own. So a difference
between two methods is seen at the same learning rates, temperatures and crops.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import yaml
from scipy.stats import qmc

from contrasweep.data import data_root as folder_of_data
from contrasweep.search_spaces import Choice, Range, Scalar, Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.files import write_whole
from contrasweep.tuning.planning.plan_sweep import experiment_of_defaults
from contrasweep.tuning.planning.resolve import is_possible
from contrasweep.tuning.stability.pool_request import PoolRequest
from contrasweep.tuning.statistics import Floats

DIGITS: Final = 6
"""Significant digits of a number in a pool, so that a person can read the file."""

MOST_DRAWN: Final = 64
"""So many points are drawn for each configuration that is wanted, if most cannot be run."""

Configuration = dict[str, Scalar]
CanRun = Callable[[str, Mapping[str, Scalar]], bool]


@dataclass(frozen=True)
class Pools:
    """The configurations of several methods, paired.

    Attributes:
        request: what was asked for.
        configurations: by method.
    """

    request: PoolRequest
    configurations: Mapping[str, Sequence[Configuration]]

    @property
    def common(self) -> list[str]:
        """The names of the parameters in which the n-th configurations agree."""
        return list(common_parameters(list(self.request.spaces.values())))

    @property
    def common_in_words(self) -> str:
        """What is common to which methods."""
        return f"common to {', '.join(self.request.methods)}: {', '.join(self.common) or 'nothing'}"

    @property
    def remarks(self) -> list[str]:
        """Why a comparison of the methods by these pools may say little."""
        found = []
        if not self.common:
            found.append("The methods have no parameter in common, so their pools are not paired.")
        for setting, searching in searched_by_some(self.request.spaces).items():
            fixed = ", ".join(one for one in self.request.methods if one not in searching)
            found.append(
                f"{setting} is searched for {', '.join(searching)}, and has one value for {fixed}: the "
                f"comparison is not on equal terms. `--set {setting}=VALUE` fixes it for all."
            )
        return found

    def repeats_in_words(self, method: str) -> str | None:
        """Return how many configurations of a method are different, if not all are."""
        own, size = self.configurations[method], self.request.size
        different = len({tuple(one.items()) for one in own})
        if different == size:
            return None
        return f"{method} searches few values: {different} of its {size} configurations are different."

    def write(self, folder: Path, command: str) -> dict[str, Path]:
        """Write the file of each method for `sweep --enqueue`, and return the paths by method.

        Args:
            folder: where to; it is made if there is none.
            command: what made the pools, for a comment in the files.
        """
        files = {method: folder / f"{method}.yaml" for method in self.request.methods}
        for method, file in files.items():
            whose = f"{self.request.size} configurations of {method} on {self.request.dataset}"
            remarks = [f"{whose}; {self.common_in_words}", f"Made by: {command}"]
            write_whole(file, pool_text(self.configurations[method], remarks))
        return files


def make_pools(request: PoolRequest, data_root: Path | None = None) -> Pools:
    """Return pools of configurations that can all run; the files of the dataset need not be there.

    Raises:
        InputError: too few configurations can be run, or a setting does not fit the dataset.
    """
    root, spaces = folder_of_data(data_root), request.spaces
    bases = {
        method: experiment_of_defaults(method, request.dataset, search, root)
        for method, search in request.searches.items()
    }

    def can_run(method: str, values: Mapping[str, Scalar]) -> bool:
        return is_possible(bases[method], spaces[method], values, root)

    return Pools(request, paired_pools(spaces, request.size, request.seed, can_run))


def searched_by_some(spaces: Mapping[str, Space]) -> dict[str, list[str]]:
    """Return the settings of experiments that some of several methods search, and who does.

    The others train with one value, so a difference between the methods may be one of augmentation or of the
    optimizer. Hyperparameters of a method have no dot in their names.
    """
    searched = {
        method: {one.name for one in space.searched if "." in one.name} for method, space in spaces.items()
    }
    everywhere = set.intersection(*searched.values())
    return {
        name: [method for method, own in searched.items() if name in own]
        for name in sorted(set.union(*searched.values()) - everywhere)
    }


def paired_pools(
    spaces: Mapping[str, Space], size: int, seed: int, can_run: CanRun
) -> dict[str, list[Configuration]]:
    """Return `size` configurations of each method's space, by method.

    A point of the sequence that gives one method a configuration that cannot be run is left out for all.

    Args:
        spaces: the spaces by method.
        size: how many configurations each pool has; a power of two covers the spaces most evenly.
        seed: scrambles the sequence.
        can_run: whether a method can run a configuration, which has its fixed values, too.

    Raises:
        InputError: too few configurations can be run.
    """
    rows: list[int] = []
    judged, drawn = 0, size
    while True:
        # The first points of a longer sequence are those of a shorter one.
        found = _configurations(spaces, drawn, seed)
        rows += [
            row
            for row in range(judged, drawn)
            if all(can_run(one, space.complete(found[one][row])) for one, space in spaces.items())
        ]
        if len(rows) >= size:
            return {method: [found[method][row] for row in rows[:size]] for method in spaces}
        if drawn >= MOST_DRAWN * size:
            raise InputError(
                f"of {drawn:,} configurations of {', '.join(spaces)}, {len(rows):,} can be run, and "
                f"{size:,} are wanted; some values exclude each other: fix them (--set)"
            )
        judged, drawn = drawn, 2 * drawn


def _configurations(spaces: Mapping[str, Space], size: int, seed: int) -> dict[str, list[Configuration]]:
    common = common_parameters(list(spaces.values()))
    own = {
        method: [one.name for one in space.searched if one.name not in common]
        for method, space in spaces.items()
    }
    units = _sobol(len(common) + sum(map(len, own.values())), size, seed)
    shared, further = units[:, : len(common)], iter(units[:, len(common) :].T)
    found = {}
    for method, space in spaces.items():
        columns = dict(zip(common, shared.T, strict=True)) | {name: next(further) for name in own[method]}
        rows = [{name: float(column[row]) for name, column in columns.items()} for row in range(size)]
        found[method] = [_configuration(space, common, row) for row in rows]
    return found


def common_parameters(spaces: Sequence[Space]) -> dict[str, Choice | Range]:
    """Return the parameters that every configuration of every space has, with the values that all allow.

    Of ranges, that is the part that they share; a parameter whose ranges or choices share too little, or
    have different forms, is not common.
    """
    always = set.intersection(*(set(space.always_searched) for space in spaces))
    found: dict[str, Choice | Range] = {}
    for name in (one.name for one in spaces[0].searched if one.name in always):
        entries = [one for space in spaces for one in space.searched if one.name == name]
        shared: Choice | Range | None = entries[0]
        for entry in entries[1:]:
            shared = _both(shared, entry)
        if shared is not None:
            found[name] = shared
    return found


def pool_text(configurations: Sequence[Configuration], remarks: Sequence[str]) -> str:
    """Return a pool as the YAML that `sweep --enqueue` reads, with remarks at its head."""
    head = "".join(f"# {line}\n" for line in remarks)
    return head + yaml.safe_dump(list(configurations), sort_keys=False, default_flow_style=None, width=110)


def _sobol(dimensions: int, size: int, seed: int) -> Floats:
    """Return points of a scrambled Sobol sequence, (size, dimensions)."""
    engine = qmc.Sobol(max(1, dimensions), scramble=True, rng=seed % 2**64)
    # The whole blocks of powers of two are balanced; what is cut off does no harm to the rest.
    return np.asarray(engine.random_base2((size - 1).bit_length())[:size, :dimensions])


def _both(first: Choice | Range | None, second: Choice | Range) -> Choice | Range | None:
    """Return a parameter with the values that both allow; None where that is fewer than two."""
    if isinstance(first, Choice) and isinstance(second, Choice):
        values = tuple(value for value in first.choices if second.contains(value))
        default = first.default if first.default in values else next(iter(values), None)
        return None if len(values) < 2 else first.model_copy(update={"choices": values, "default": default})
    if isinstance(first, Range) and isinstance(second, Range) and first.form == second.form:
        low, high = max(first.low, second.low), min(first.high, second.high)
        default = min(max(first.default, low), high)
        return first.model_copy(update={"low": low, "high": high, "default": default}) if low < high else None
    return None


def _configuration(
    space: Space, common: Mapping[str, Choice | Range], units: Mapping[str, float]
) -> Configuration:
    """Return the active values of a configuration from a unit for each parameter."""
    values: Configuration = {}
    for parameter in space.searched:
        if parameter.name in space.active(values):
            values[parameter.name] = _value(common.get(parameter.name, parameter), units[parameter.name])
    return values


def _value(parameter: Choice | Range, unit: float) -> Scalar:
    if isinstance(parameter, Choice):
        return parameter.choices[min(int(unit * len(parameter.choices)), len(parameter.choices) - 1)]
    value = parameter.scale.value(unit)
    if parameter.is_integer:
        return value
    return min(max(float(f"{value:.{DIGITS}g}"), float(parameter.low)), float(parameter.high))
