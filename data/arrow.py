"""Encoded images in Arrow files, as the library `datasets` writes them: mapped into memory, in any order."""

import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrasweep.data.image_files import image_bytes
from contrasweep.data.root import DatasetDamaged


@dataclass(frozen=True)
class ArrowPart:
    """One Arrow file (a stream of record batches) of a split, with facts that identify its content.

    Attributes:
        path: the file's path.
        size: in bytes.
        changed: the time of the last change in nanoseconds.
    """

    path: str
    size: int
    changed: int

    @property
    def place(self) -> str:
        """The file's path."""
        return self.path

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(_table(self).num_rows)

    @property
    def schema(self) -> Any:
        """The schema."""
        return _table(self).schema

    def values(self, column: str, kind: str) -> list[Any]:
        """Return the values of a column, see `TablePart`."""
        import pyarrow as pa

        try:
            result: list[Any] = _table(self).column(column).cast(kind).to_pylist()
        except pa.ArrowException as error:
            raise DatasetDamaged(f"column {column} of {self.path} cannot be read: {error}") from error
        return result

    def all_numbered(self, column: str) -> bool:
        """Whether each value is a whole number from 0."""
        import pyarrow.compute as pc
        from pyarrow import types

        values = _table(self).column(column)
        if not types.is_integer(values.type) or values.null_count:
            return False
        least = pc.min(values).as_py()
        return least is None or least >= 0

    def first_images(self, column: str, count: int) -> list[bytes]:
        """Return the first encoded images of a column, at most `count`."""
        return ArrowImages([self], column).read(range(min(count, self.rows)))


class ArrowImages:
    """The encoded images of one column (`{bytes, path}`) of Arrow files: an `EncodedImages`.

    An image without bytes is a file of its own, at its path. No image is held: the system keeps what is read
    often in memory.
    """

    def __init__(self, parts: Sequence[ArrowPart], column: str) -> None:
        chunks = [chunk for part in parts for chunk in _table(part).column(column).chunks]
        self._bytes = [chunk.field("bytes") for chunk in chunks]
        self._paths = [_paths(chunk) for chunk in chunks]
        self._starts = list(accumulate(map(len, chunks), initial=0))
        self._parts = parts
        self._of_parts = list(accumulate((part.rows for part in parts), initial=0))

    def __len__(self) -> int:
        return self._starts[-1]

    def name(self, row: int) -> str:
        """Return the file of a row, and the number of the row in it, from 0."""
        part = bisect_right(self._of_parts, row) - 1
        return f"{self._parts[part].path}, row {row - self._of_parts[part]}"

    def prepare_random_access(self) -> None:
        """Do nothing: rows are read in any order."""

    def read(self, rows: Sequence[int]) -> list[bytes]:
        """Return the encoded images of ``rows``; empty bytes for one that has neither bytes nor a path.

        Raises:
            DatasetDamaged: see `image_bytes`.
        """
        return [self._encoded(row) for row in rows]

    def sizes(self) -> NDArray[np.int64]:
        """Return the bytes of each encoded image, `(N,)`, without reading it; -1 for a missing one."""
        import pyarrow.compute as pc

        lengths = [
            pc.binary_length(chunk).fill_null(-1).to_numpy(zero_copy_only=False) for chunk in self._bytes
        ]
        sizes = np.concatenate([np.zeros(0, dtype=np.int64), *lengths]).astype(np.int64)
        for row in np.flatnonzero(sizes < 0).tolist():
            path = self._path(row)
            sizes[row] = os.stat(path).st_size if path and os.path.isfile(path) else -1
        return sizes

    def _encoded(self, row: int) -> bytes:
        chunk = bisect_right(self._starts, row) - 1
        encoded: bytes | None = self._bytes[chunk][row - self._starts[chunk]].as_py()
        if encoded is not None:
            return encoded
        path = self._path(row)
        return image_bytes(Path(path)) if path else b""

    def _path(self, row: int) -> str | None:
        chunk = bisect_right(self._starts, row) - 1
        paths = self._paths[chunk]
        path: str | None = None if paths is None else paths[row - self._starts[chunk]].as_py()
        return path


def _paths(chunk: Any) -> Any:
    return chunk.field("path") if chunk.type.get_field_index("path") >= 0 else None


@lru_cache(maxsize=4096)
def _table(part: ArrowPart) -> Any:
    """Return the file as a table that is mapped into memory.

    Raises:
        DatasetDamaged: it is not there, or no Arrow file.
    """
    import pyarrow as pa

    try:
        return pa.ipc.open_stream(pa.memory_map(part.path)).read_all()
    except (pa.ArrowException, OSError) as error:
        raise DatasetDamaged(f"{part.path} cannot be read as Arrow: {error}") from error
