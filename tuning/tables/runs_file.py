"""Read the runs of a user's own table from Parquet or CSV; docs/claims.md defines the file."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from contrasweep.given_files import MIB, check_given
from contrasweep.names import did_you_mean
from contrasweep.tuning.errors import InputError, one_line, told_to_user
from contrasweep.tuning.tables.results import RunValue

OWN = ""
"""The name of the table that the claims are about, where a file names several."""

TYPES: Mapping[str, pa.DataType] = {
    "row": pa.string(),
    "column": pa.string(),
    "seed": pa.int64(),
    "value": pa.float64(),
    "untrained": pa.float64(),
    "table": pa.string(),
}
"""The columns of a file and their types."""

OPTIONAL = ("untrained", "table")
ENDINGS = (".parquet", ".csv")

MOST_BYTES = 256 * MIB
"""The size of the largest file of runs that is read."""

MOST_RUNS = 1_000_000
MOST_COLUMNS = 1_000


def read_runs(path: Path) -> dict[str, tuple[RunValue, ...]]:
    """Return the runs by the table that they are of; other columns of the file are not read.

    Raises:
        InputError: the file cannot be read, is too large or neither Parquet nor CSV, lacks a column, or holds
            a run that is not a finite number, names no cell, or is given twice.
    """
    content = _content(path)
    lines = content.to_pylist()
    if not lines:
        raise InputError(f"{path} holds no runs")
    found: dict[str, list[RunValue]] = {}
    for number, line in enumerate(lines, start=1):
        name = line.pop("table", None) or OWN
        for key in ("row", "column"):
            if not line[key]:
                raise InputError(f"{path}: run {number} has no {key}")
        if line.get("untrained") is not None and math.isnan(line["untrained"]):
            line["untrained"] = None  # Writers other than pandas keep NaN for "there is none".
        run = RunValue(**line)
        _check_finite(run, f"{path}: {_told(name, run)}")
        found.setdefault(name, []).append(run)
    for name, runs in found.items():
        _refuse_doubles(path, name, runs)
    return {name: tuple(runs) for name, runs in found.items()}


def _content(path: Path) -> pa.Table:
    """Return the columns that count, each of its type."""
    if path.suffix not in ENDINGS:
        raise InputError(f"{path}: runs are read from a file that ends in {' or '.join(ENDINGS)}")
    with told_to_user():
        check_given(path, MOST_BYTES)
    try:
        content = _parquet(path) if path.suffix == ".parquet" else _comma_separated(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read: {one_line(error)}") from None
    return pa.table({name: _cast(path, name, content[name]) for name in content.column_names})


def _parquet(path: Path) -> pa.Table:
    with pq.ParquetFile(path) as file:
        if file.metadata.num_rows > MOST_RUNS:
            raise InputError(f"{path} holds {file.metadata.num_rows:,} runs; allowed: at most {MOST_RUNS:,}")
        return file.read(columns=_needed(path, file.schema_arrow.names))


def _comma_separated(path: Path) -> pa.Table:
    with pa.csv.open_csv(path) as reader:
        names = reader.schema.names
    if len(names) == 1 and ";" in names[0]:
        raise InputError(f"{path}: its columns are separated by semicolons; allowed: commas")
    # Keys are text even where they look like numbers.
    text = {name: kind for name, kind in TYPES.items() if kind == pa.string()}
    options = pa.csv.ConvertOptions(column_types=text, include_columns=_needed(path, names))
    return pa.csv.read_csv(path, convert_options=options)


def _needed(path: Path, names: Sequence[str]) -> list[str]:
    """Return the columns to read of a file with columns of these names."""
    if len(names) > MOST_COLUMNS:
        raise InputError(f"{path} has {len(names):,} columns; allowed: at most {MOST_COLUMNS:,}")
    for name in TYPES:
        if name not in names and name not in OPTIONAL:
            near = did_you_mean(name, names)
            raise InputError(f"{path} has no column {name!r}.{near} Columns of the file: {', '.join(names)}.")
        if names.count(name) > 1:
            raise InputError(f"{path} has {names.count(name)} columns {name!r}: one is needed")
    return [name for name in TYPES if name in names]


def _cast(path: Path, name: str, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in its type; pandas writes the seeds of a column with gaps as 1.0 and NaN."""
    if name == "seed" and pa.types.is_floating(values.type):
        values = pa.chunked_array([pa.array(values.to_pylist(), values.type, from_pandas=True)])
    try:
        return values.cast(TYPES[name])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"{path}: column {name!r} is not {TYPES[name]}: {one_line(error)}") from None


def _check_finite(run: RunValue, told: str) -> None:
    if run.value is None or not math.isfinite(run.value):
        value = "no value" if run.value is None else f"the value {run.value}"
        raise InputError(f"{told} has {value}: a finite number is needed")
    if run.untrained is not None and math.isinf(run.untrained):
        raise InputError(f"{told} has the untrained value {run.untrained}: a finite number is needed")


def _refuse_doubles(path: Path, name: str, runs: Sequence[RunValue]) -> None:
    """Refuse two runs of a cell with one seed, and a fact of the data, without a seed, beside runs."""
    cells = Counter((run.row, run.column) for run in runs)
    seeds = Counter((run.row, run.column, run.seed) for run in runs)
    for run in runs:
        count = seeds[run.row, run.column, run.seed]
        if count > 1:
            raise InputError(f"{path}: {_told(name, run)} is given {count} times")
        if run.seed is None and cells[run.row, run.column] > 1:
            raise InputError(
                f"{path}: {_told(name, run)} stands beside runs of its cell: "
                "only a fact of the data, alone in its cell, has no seed"
            )


def _told(name: str, run: RunValue) -> str:
    table = f"table {name!r}, " if name != OWN else ""
    seed = "without a seed" if run.seed is None else f"seed {run.seed}"
    return f"{table}row {run.row!r}, column {run.column!r}, {seed}"
