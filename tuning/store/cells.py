"""The allowed cells of a Parquet file: a file with other cells is damaged, even if its columns are right."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, get_args

import pyarrow as pa
import pyarrow.compute as pc

from contrasweep.search_spaces import Parameter, Range, Space
from contrasweep.tuning.experiment.statuses import STATUSES
from contrasweep.tuning.limits import MOST
from contrasweep.tuning.store.layout import Kind
from contrasweep.tuning.store.schema import Phase, hyperparameter_column

_ALWAYS_THERE: Final[Mapping[Kind, Sequence[str]]] = {
    "trials": ("trial", "seed", "attempt", "phase", "status"),
    "epochs": ("trial", "seed", "attempt", "epoch", "time"),
}
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {"status": STATUSES, "phase": get_args(Phase)}
_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    **dict.fromkeys(("trial", "attempt", "epoch", "epochs", "rung"), (0, MOST)),
    "seed": (0, 2**63 - 1),
    # Seconds can be negative, if a clock is set back. These are thirty thousand years.
    **dict.fromkeys(("seconds", "train_seconds", "evaluate_seconds"), (-1e12, 1e12)),
    **dict.fromkeys(("cpus", "gpus"), (0, MOST)),
}
# Python's dates end with the year 9999; a day less leaves room for any time zone.
_LAST: Final = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp()) * 1_000_000


def impossible_cell(table: pa.Table, kind: Kind, space: Space) -> str | None:
    """Describe a cell of trial or epoch rows that no writer writes; None if all can be.

    Args:
        table: the rows, or some columns of them.
        kind: of which of the two tables.
        space: the study's search space; values outside of it are impossible.
    """
    try:
        table.validate(full=True)
    except pa.ArrowInvalid as error:
        return f"has broken cells: {error}"
    parameters = {hyperparameter_column(parameter.name): parameter for parameter in space.parameters}
    for name in table.column_names:
        column = table[name]
        if name in _ALWAYS_THERE[kind] and column.null_count:
            return f"has a row without {name}"
        problem = _outside(column, parameters[name]) if name in parameters else _wrong(name, column)
        if problem is not None:
            return problem
    return None


def _wrong(name: str, column: pa.ChunkedArray) -> str | None:
    """Describe a cell of a column that every study has."""
    if name in _WORDS:
        unknown = set(column.unique().to_pylist()) - set(_WORDS[name])
        return f"has the {name} {min(unknown)!r}" if unknown else None
    if pa.types.is_timestamp(column.type):
        dated = all(0 <= time < _LAST for time in _extremes(column.cast(pa.int64())))
        return None if dated else f"has a {name} before 1970 or after the year 9999"
    if name in _RANGES:
        least, most = _RANGES[name]
        outside = [value for value in _extremes(column) if not least <= value <= most]
        return f"has the {name} {outside[0]}" if outside else None
    return None


def _outside(column: pa.ChunkedArray, parameter: Parameter) -> str | None:
    """Describe a value of a hyperparameter that its space never takes."""
    values = _extremes(column) if isinstance(parameter, Range) else column.drop_null().unique().to_pylist()
    never = next(
        (value for value in values if not (parameter.contains(value) or _at_end(value, parameter))), None
    )
    return None if never is None else f"has {parameter.name} = {never!r}; the space: {parameter.describe()}"


def _at_end(value: Any, parameter: Parameter) -> bool:
    """Whether a value is an end of a range but for rounding, which a logarithm may add."""
    return isinstance(parameter, Range) and any(
        math.isclose(value, end) for end in (parameter.low, parameter.high)
    )


def _extremes(column: pa.ChunkedArray) -> list[float]:
    """Return the least and the greatest number, or NaN if it is among them; nothing of a column of nulls."""
    given = column.drop_null()
    if not len(given):
        return []
    if pa.types.is_floating(given.type) and pc.any(pc.is_nan(given)).as_py():
        return [math.nan]
    return list(pc.min_max(given).as_py().values())
