"""The columns of a study: typed, fixed when the study is created, and the same in each of its files."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, field_validator

from contrasweep.names import did_you_mean
from contrasweep.search_spaces import TypeName
from contrasweep.tuning.store.filesystem import StoreError

SCHEMA_VERSION: Final = 1
VERSION_KEY: Final = b"contrasweep.schema_version"
HYPERPARAMETER: Final = "hp."
"""How the column of a hyperparameter begins; its name follows."""
METRIC: Final = "metric."
"""How the column of a metric begins; its name follows, such as `val.accuracy`."""
_METADATA: Final = {VERSION_KEY: str(SCHEMA_VERSION).encode()}

Phase = Literal["search", "final"]

_ARROW_TYPES: Final = {"float": pa.float64(), "int": pa.int64(), "string": pa.string(), "bool": pa.bool_()}
_TIME: Final = pa.timestamp("us", tz="UTC")

# The study is not a column: dataset readers take it from the folder's name (study=NAME), and pyarrow refuses
# a column that is also a partition key of another type.
_TRIAL_COLUMNS: Final = [
    ("trial", pa.int64()),
    ("seed", pa.int64()),
    ("attempt", pa.int64()),
    ("phase", pa.string()),
    ("config", pa.string()),
    ("method", pa.string()),
    ("dataset", pa.string()),
    ("status", pa.string()),
    ("error", pa.string()),
    ("epoch", pa.int64()),
    ("epochs", pa.int64()),
    ("rung", pa.int64()),
    ("started", _TIME),
    ("finished", _TIME),
    ("seconds", pa.float64()),
    ("train_seconds", pa.float64()),
    ("evaluate_seconds", pa.float64()),
    ("host", pa.string()),
    ("device", pa.string()),
    ("cpus", pa.float64()),
    ("gpus", pa.float64()),
]
_EPOCH_COLUMNS: Final = [
    ("trial", pa.int64()),
    ("seed", pa.int64()),
    ("attempt", pa.int64()),
    ("epoch", pa.int64()),
    ("time", _TIME),
    ("seconds", pa.float64()),
    ("train_seconds", pa.float64()),
    ("evaluate_seconds", pa.float64()),
]


def hyperparameter_column(name: str) -> str:
    """Return the column of a hyperparameter in the trials of a study."""
    return f"{HYPERPARAMETER}{name}"


def metric_column(name: str) -> str:
    """Return the column of a metric in the trials and epochs of a study."""
    return f"{METRIC}{name}"


def cells_under(prefix: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cells of a row whose columns begin with a prefix, by the rest of the columns' names."""
    return {name.removeprefix(prefix): cell for name, cell in row.items() if name.startswith(prefix)}


class StudySchema(BaseModel):
    """The hyperparameters and metrics of a study; they determine the columns of its two tables.

    Attributes:
        hyperparameters: type by name (without ``hp.``). A value is null in a trial that does not have it.
        metrics: names (without ``metric.``); all are float64.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached_property,))

    hyperparameters: Mapping[str, TypeName]
    metrics: tuple[str, ...]

    @field_validator("metrics")
    @classmethod
    def _distinct(cls, metrics: tuple[str, ...]) -> tuple[str, ...]:
        repeated = sorted({name for name in metrics if metrics.count(name) > 1})
        if repeated:
            raise ValueError(f"metrics named twice: {', '.join(repeated)}")
        return metrics

    @cached_property
    def trials(self) -> pa.Schema:
        """Columns of the files under ``trials/``: one row for each (trial, seed, attempt)."""
        hyperparameters = [
            (hyperparameter_column(name), _ARROW_TYPES[kind]) for name, kind in self.hyperparameters.items()
        ]
        return pa.schema(_TRIAL_COLUMNS + hyperparameters + self._metric_columns, metadata=_METADATA)

    @cached_property
    def epochs(self) -> pa.Schema:
        """Columns of the files under ``epochs/``: one row for each epoch of a (trial, seed, attempt)."""
        return pa.schema(_EPOCH_COLUMNS + self._metric_columns, metadata=_METADATA)

    @property
    def _metric_columns(self) -> list[tuple[str, pa.DataType]]:
        return [(metric_column(name), pa.float64()) for name in self.metrics]

    def hyperparameter_cells(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the ``hp.*`` cells of a row; names that ``values`` lacks are null.

        Raises:
            StoreError: a name that the study does not declare, or a value of another type.
        """
        _refuse_undeclared("hyperparameter", values, self.hyperparameters)
        return {
            hyperparameter_column(name): _typed(f"hyperparameter {name!r}", values.get(name), kind)
            for name, kind in self.hyperparameters.items()
        }

    def metric_cells(self, values: Mapping[str, Any]) -> dict[str, float | None]:
        """Return the ``metric.*`` cells of a row; names that ``values`` lacks are null, and NaN stays NaN.

        Raises:
            StoreError: a name that the study does not declare, or a value that is not a number.
        """
        _refuse_undeclared("metric", values, self.metrics)
        return {
            metric_column(name): _typed(f"metric {name!r}", values.get(name), "float")
            for name in self.metrics
        }


def _refuse_undeclared(what: str, given: Iterable[str], declared: Iterable[str]) -> None:
    allowed = list(declared)
    for name in given:
        if name not in allowed:
            hint, listed = did_you_mean(name, allowed), ", ".join(allowed) or "none"
            raise StoreError(f"The study has no {what} {name!r}.{hint} Its columns were fixed as: {listed}.")


def _typed(what: str, value: Any, kind: TypeName) -> Any:
    """Return the value as a plain Python value of the declared type; numpy scalars are converted."""
    if value is None:
        return None
    is_bool = isinstance(value, bool | np.bool_)
    if kind == "bool" and is_bool:
        return bool(value)
    if kind == "string" and isinstance(value, str):
        return str(value)
    if kind == "int" and isinstance(value, numbers.Integral) and not is_bool:
        return int(value)
    if kind == "float" and isinstance(value, numbers.Real) and not is_bool:
        return float(value)
    raise StoreError(f"The {what} is {kind} in this study, but {value!r} ({type(value).__name__}) was given.")
