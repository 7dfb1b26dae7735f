"""Small Parquet files for users to share; their metadata describes their content."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from contrasweep.tuning.errors import InputError, one_line
from contrasweep.tuning.files import written_whole


def write_rows_about(path: Path, rows: Sequence[dict[str, Any]], key: str, about: Any) -> None:
    """Write rows as a Parquet file whose metadata hold `about`, as JSON, under `key`."""
    table = pa.Table.from_pylist(rows).replace_schema_metadata({key.encode(): json.dumps(about).encode()})
    with written_whole(path) as file:
        pq.write_table(table, file, compression="zstd")


def read_rows_about(path: Path, key: str, otherwise: str) -> tuple[pa.Table, Any]:
    """Return the rows of a file that `write_rows_about` wrote under `key`, and what they are about.

    Raises:
        InputError: the file cannot be read, or is another one: then the message ends with `otherwise`.
    """
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        why = "there is no such file" if isinstance(error, FileNotFoundError) else one_line(error)
        raise InputError(f"{path} cannot be read as Parquet: {why}") from None
    held = (table.schema.metadata or {}).get(key.encode())
    if held is None:
        raise InputError(f"{path} {otherwise}")
    with damage_told(path):
        return table, json.loads(held)


@contextmanager
def damage_told(path: Path) -> Iterator[None]:
    """Turn the error of content that is not as it was written, as a missing column, into an InputError."""
    try:
        yield
    except InputError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} is damaged: {one_line(error)}") from None
