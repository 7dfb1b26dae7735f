"""Encoded images in Parquet files of the Hugging Face hub: read by row group, or unpacked for any order.

In ascending order, row groups are read one after the other. In random order, each image would cost a whole
row group. So the encoded images are first unpacked, once for each machine, into one flat file of the user's
cache. Then every process reads the bytes of an image from there, through the page cache.
"""

import hashlib
import logging
import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrasweep.data.cache import kept_folder
from contrasweep.data.root import DatasetDamaged

log = logging.getLogger(__name__)

_GROUPS_HELD = 4

_BATCH = 4
"""The number of images that are read at once: pyarrow cannot read 2 GiB, which a row group may have."""


@dataclass(frozen=True)
class ParquetPart:
    """One Parquet file of a split, with facts that identify its content without reading it.

    Attributes:
        filesystem: a pyarrow filesystem.
        path: the file's path in it.
        size: in bytes.
        changed: the time of the last change in nanoseconds; 0 if the filesystem does not keep it.
    """

    filesystem: Any
    path: str
    size: int
    changed: int

    def __hash__(self) -> int:
        return hash((self.path, self.size, self.changed))

    @property
    def place(self) -> str:
        """The file's path."""
        return self.path

    @property
    def rows(self) -> int:
        """The number of rows, from the footer."""
        return int(footer(self).num_rows)

    @property
    def schema(self) -> Any:
        """The schema, from the footer."""
        return footer(self).schema.to_arrow_schema()

    def values(self, column: str, kind: str) -> list[Any]:
        """Return the values of a column, see `TablePart`."""
        import pyarrow.parquet as pq

        with opened(self) as file:
            values = pq.ParquetFile(file).read([column], use_threads=False).column(column)
            # Inside `opened`, which tells that a value does not fit.
            result: list[Any] = values.cast(kind).to_pylist()
        return result

    def all_numbered(self, column: str) -> bool:
        """Whether the statistics of the file say that each value is a whole number from 0; none is read."""
        metadata = footer(self)
        for group in range(metadata.num_row_groups):
            chunks = metadata.row_group(group)
            own = [chunks.column(place) for place in range(chunks.num_columns)]
            found = next((one.statistics for one in own if one.path_in_schema == column), None)
            if found is None or not found.has_min_max or not found.has_null_count:
                return False
            if found.null_count or not isinstance(found.min, int) or found.min < 0:
                return False
        return True

    def first_images(self, column: str, count: int) -> list[bytes]:
        """Return the first encoded images; row groups are read page by page."""
        import pyarrow.parquet as pq

        with opened(self) as file:
            first = pq.ParquetFile(file, buffer_size=1 << 16)
            batches = first.iter_batches(count, columns=[f"{column}.bytes"], use_threads=False)
            batch = next(batches, None)
        if batch is None:
            return []
        return [encoded or b"" for encoded in batch.column(0).field("bytes").to_pylist()]


@contextmanager
def opened(part: ParquetPart, what: str = "") -> Iterator[Any]:
    """Open a file; where it cannot be read, the error names the file, or what is read of it.

    Raises:
        DatasetDamaged: the file is not a Parquet file, is truncated, or is not there.
    """
    import pyarrow as pa

    try:
        with part.filesystem.open_input_file(part.path) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise DatasetDamaged(f"{what}{part.path} cannot be read as Parquet: {error}") from error


@lru_cache(maxsize=4096)
def footer(part: ParquetPart) -> Any:
    """Return the file's pyarrow `FileMetaData`: its schema, row groups and their statistics.

    Raises:
        DatasetDamaged: see `opened`.
    """
    import pyarrow.parquet as pq

    with opened(part) as file:
        return pq.read_metadata(file)


class ParquetImages:
    """The encoded images of one column (`{bytes, path}`) of Parquet files: an `EncodedImages`."""

    def __init__(self, parts: Sequence[ParquetPart], column: str) -> None:
        self._column = column
        self._groups = [(part, group) for part in parts for group in range(footer(part).num_row_groups)]
        counts = [footer(part).row_group(group).num_rows for part, group in self._groups]
        self._starts = list(accumulate(counts, initial=0))
        self._parts = parts
        self._held: OrderedDict[int, list[bytes]] = OrderedDict()
        self._lock = Lock()
        self._unpacked: UnpackedImages | None = None

    def __len__(self) -> int:
        return int(self._starts[-1])

    def name(self, row: int) -> str:
        """Return the file of a row, and the number of the row in it, from 0."""
        part, _ = self._groups[self._group_of(row)]
        first = next(self._starts[i] for i, (other, _) in enumerate(self._groups) if other == part)
        return f"{part.path}, row {row - first}"

    def prepare_random_access(self) -> None:
        """Unpack the encoded images into the user's cache, unless an earlier run has done so."""
        with self._lock:
            if self._unpacked is None:
                self._unpacked = UnpackedImages(kept_folder("unpacked", self._identity(), self._unpack))
                self._held.clear()

    def read(self, rows: Sequence[int]) -> list[bytes]:
        """Return the encoded images of ``rows``; for ascending rows, each row group is read once."""
        if self._unpacked is not None:
            return self._unpacked.read(rows)
        found = []
        for row in rows:
            group = self._group_of(row)
            found.append(self._group(group)[row - self._starts[group]])
        return found

    def _group_of(self, row: int) -> int:
        return bisect_right(self._starts, row) - 1

    def _group(self, number: int) -> list[bytes]:
        with self._lock:
            if number not in self._held:
                self._held[number] = list(self._images_of(number))
                while len(self._held) > _GROUPS_HELD:
                    self._held.popitem(last=False)
            self._held.move_to_end(number)
            return self._held[number]

    def _images_of(self, number: int) -> Iterator[bytes]:
        """Yield the encoded images of a row group; only those of a batch are in memory."""
        import pyarrow.parquet as pq

        part, group = self._groups[number]
        columns = [f"{self._column}.bytes"]
        with opened(part, f"row group {group} of ") as file:
            content = pq.ParquetFile(file, metadata=footer(part))
            # One thread, because the processes of a sweep already use all cores.
            for batch in content.iter_batches(_BATCH, row_groups=[group], columns=columns, use_threads=False):
                yield from (value or b"" for value in batch.column(0).field("bytes").to_pylist())

    def _unpack(self, folder: Path) -> None:
        log.info("unpacking %d encoded images into the cache, once", len(self))
        lengths: list[int] = []
        with (folder / "images.bin").open("wb") as file:
            for number in range(len(self._groups)):
                for image in self._images_of(number):
                    file.write(image)
                    lengths.append(len(image))
        np.save(folder / "ends.npy", np.cumsum(np.array(lengths, dtype=np.int64)))

    def _identity(self) -> str:
        parts = "\n".join(
            f"{part.filesystem.type_name} {part.path} {part.size} {part.changed}" for part in self._parts
        )
        return hashlib.sha256(f"{self._column}\n{parts}".encode()).hexdigest()[:24]


class UnpackedImages:
    """Encoded images end to end in one file, with the place of each.

    Reading by position releases the interpreter's lock; a page fault in a memory map would hold it.
    """

    def __init__(self, folder: Path) -> None:
        self._ends: NDArray[np.int64] = np.load(folder / "ends.npy")
        # Unbuffered, and open during the life of this object.
        self._file = (folder / "images.bin").open("rb", buffering=0)

    def read(self, rows: Sequence[int]) -> list[bytes]:
        """Return the encoded images of ``rows``, in any order and from any thread."""
        bounds = [(int(self._ends[row - 1]) if row else 0, int(self._ends[row])) for row in rows]
        return [os.pread(self._file.fileno(), end - start, start) for start, end in bounds]
