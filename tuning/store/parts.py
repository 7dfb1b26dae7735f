"""The Parquet files of a study: how they are named, written, listed and read.

Each worker writes its own small files: one trial row for each attempt, and parts with some epochs each.
Compaction merges them. A file name contains (trial, seed, attempt): counting attempts opens no file.
"""

from __future__ import annotations

import io
import logging
import re
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from contrasweep.search_spaces import Space
from contrasweep.tuning.errors import one_line
from contrasweep.tuning.store.cells import impossible_cell
from contrasweep.tuning.store.filesystem import OBJECT_STORES, ONCE, Location, StoreRefuses
from contrasweep.tuning.store.layout import Kind, rows_folder
from contrasweep.tuning.store.record import StudyRecord
from contrasweep.tuning.store.schema import SCHEMA_VERSION, VERSION_KEY

# A compaction at the same time moves rows to a new file. One read never meets this many moves.
_ROUNDS: Final = 8
# Each start and end of a trial lists its folder. With all trials in one folder, the cost would be quadratic.
_TRIALS_IN_A_FOLDER: Final = 100
# To end a trial, the driver reads its rows. With all trials in one group, the cost would be quadratic.
_ROWS_IN_A_GROUP: Final = 20_000
# A smaller file is read whole, because that takes an object store one request.
_LARGE_BYTES: Final = 1 << 20
_READ_THREADS: Final = 4
_READ_THREADS_REMOTE: Final = 32
_KEY: Final = re.compile(r"trial-(\d+)-seed-(\d+)-attempt-(\d+)(?:-part-\d+)?(?:-[0-9a-f]+)?")

log = logging.getLogger(__name__)


class Key(NamedTuple):
    """The identity of a trial row."""

    trial: int
    seed: int
    attempt: int

    @classmethod
    def of_rows(cls, table: pa.Table) -> set[Key]:
        """Return the keys of the rows of a table."""
        return {cls(**row) for row in table.select(list(cls._fields)).to_pylist()}


@dataclass(frozen=True)
class Part:
    """A Parquet file of a study, of ``size`` bytes; ``key`` is None if it holds the rows of many trials."""

    path: str
    key: Key | None
    size: int = field(default=0, compare=False)

    @property
    def compacted(self) -> bool:
        """Whether a compaction wrote the file."""
        return self.path.rsplit("/", 1)[-1].startswith("compacted-")


@dataclass(frozen=True)
class DamagedFile:
    """A skipped file: its full path and the reason."""

    path: str
    reason: str


@dataclass
class Parts:
    """The result of a read: one table of the ``schema`` for each readable file, and the files skipped."""

    kind: Kind
    schema: pa.Schema
    tables: dict[Part, pa.Table] = field(default_factory=dict)
    damaged: list[DamagedFile] = field(default_factory=list)

    def table(self) -> pa.Table:
        """Return all rows, repeats included."""
        return pa.concat_tables(self.tables.values()) if self.tables else self.schema.empty_table()

    def leave_out_impossible(self, location: Location, space: Space) -> None:
        """Move the files with a cell that no writer writes to those that are skipped."""
        # All rows at once, and file by file only if one of them is impossible: files are small and many.
        if impossible_cell(self.table().combine_chunks(), self.kind, space) is None:
            return
        for part, rows in list(self.tables.items()):
            reason = impossible_cell(rows, self.kind, space)
            if reason is not None:
                del self.tables[part]
                self.damaged.append(DamagedFile(location.path(part.path), one_line(reason)))


def trial_path(study: str, key: Key) -> str:
    """Return a new path for a trial row; each call gives another one, so writers never overwrite a row."""
    return f"{_home('trials', study, key.trial)}/{_stem(key)}-{uuid.uuid4().hex[:12]}.parquet"


def epoch_path(study: str, key: Key, part: int) -> str:
    """Return a new path for epochs; each call gives another one."""
    return f"{_home('epochs', study, key.trial)}/{_stem(key)}-part-{part:04d}-{uuid.uuid4().hex[:12]}.parquet"


def compacted_path(kind: Kind, study: str) -> str:
    """Return a new path for merged rows; each call gives another one."""
    return f"{rows_folder(kind, study)}/compacted-{uuid.uuid4().hex}.parquet"


def _home(kind: Kind, study: str, trial: int) -> str:
    """Return the folder of a trial's files; every ``_TRIALS_IN_A_FOLDER`` trials share one."""
    first = trial - trial % _TRIALS_IN_A_FOLDER
    return f"{rows_folder(kind, study)}/from-{first:06d}" if first else rows_folder(kind, study)


def write_rows(location: Location, path: str, rows: list[Mapping[str, Any]], schema: pa.Schema) -> None:
    """Write rows as one small Parquet file."""
    # from_pylist would turn a missing cell into null; here it must be an error.
    columns = {name: [row[name] for row in rows] for name in schema.names}
    buffer = io.BytesIO()
    table = pa.Table.from_pydict(columns, schema=schema)
    pq.write_table(table, buffer, use_dictionary=False, write_statistics=False, write_page_checksum=True)
    location.write(path, buffer.getvalue())


def write_table(location: Location, path: str, table: pa.Table) -> None:
    """Write many rows, sorted by trial, as one Parquet file whose groups of rows tell their trials."""
    buffer = io.BytesIO()
    pq.write_table(
        table, buffer, row_group_size=_ROWS_IN_A_GROUP, compression="zstd", write_page_checksum=True
    )
    location.write(path, buffer.getvalue())


def list_parts(location: Location, kind: Kind, study: str, trial: int | None = None) -> list[Part]:
    """Return the study's visible Parquet files, unordered; names that begin with ``_`` or ``.`` are hidden.

    With ``trial``, only the folders that can hold rows of this trial are listed, so the cost does not grow
    with the study.
    """
    base = rows_folder(kind, study)
    home = base if trial is None else _home(kind, study, trial)
    # The home first: a compaction at the same time moves rows from there to the base.
    found = location.files(home) if home != base else []
    found += location.files(base, below=trial is None)
    return [
        Part(location.within(info), _key(info.base_name), info.size or 0)
        for info in found
        if info.extension == "parquet" and info.base_name[0] not in "_."
    ]


def read_parts(
    location: Location,
    kind: Kind,
    study: StudyRecord,
    *,
    trial: int | None = None,
    only: Callable[[Part], bool] | None = None,
    names: list[str] | None = None,
) -> Parts:
    """Read the study's files while others write and compact them; damaged files are skipped and named.

    A listing is not a snapshot: a compaction at the same time can move rows to a file that it misses. So
    another listing follows the reading, until no merge is under way. Rows may come twice, from a part and
    from the compacted file; `attempts` says which of them count.

    Args:
        location: the results folder.
        kind: which of the two tables.
        study: the study.
        trial: read the rows of this trial; the result may contain rows of other trials.
        only: selects parts by their names; compacted files are always read.
        names: the columns to read; all by default.

    Raises:
        StoreUnavailable: the store cannot be reached, or (StoreRefuses) a file may not be read.
    """
    schema = study.columns.trials if kind == "trials" else study.columns.epochs
    remote = location.filesystem.type_name in OBJECT_STORES
    found = Parts(kind, schema if names is None else pa.schema([schema.field(name) for name in names]))
    seen: set[Part] = set()
    with ThreadPoolExecutor(_READ_THREADS_REMOTE if remote else _READ_THREADS) as threads:
        for round_ in range(_ROUNDS):
            listed = list_parts(location, kind, study.name, trial)
            new = [
                part for part in listed if part not in seen and (part.compacted or only is None or only(part))
            ]
            results = list(threads.map(lambda part: _read_part(location, part, schema, names, trial), new))
            seen.update(new)
            merging = False
            for part, result in zip(new, results, strict=True):
                merging = merging or part.compacted or result is None
                if isinstance(result, DamagedFile):
                    found.damaged.append(result)
                elif result is not None:
                    found.tables[part] = result
            if round_ > 0 and not merging:
                break
    found.leave_out_impossible(location, study.space)
    return found


def _read_part(
    location: Location, part: Part, schema: pa.Schema, names: list[str] | None, trial: int | None
) -> pa.Table | DamagedFile | None:
    """Return the file's rows, or why it is skipped, or None if it was deleted after the listing.

    With ``trial``, the rows of a large merged file are those near this trial.
    """
    if trial is not None and part.compacted and part.size > _LARGE_BYTES:
        near = _rows_near(location, part, schema, names, trial)
        if near is not None:
            return near
    try:
        content = location.read(part.path)
    except FileNotFoundError:
        return None
    except OSError as error:
        # The rows are not lost. Without them, a resumed sweep would train their trials again.
        if isinstance(error, StoreRefuses) or not location.reachable():
            raise
        return DamagedFile(location.path(part.path), one_line(f"cannot be read: {error}"))
    try:
        file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
        found = _rows_of(file, schema, names)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        return DamagedFile(location.path(part.path), one_line(f"is not a whole Parquet file: {error}"))
    return DamagedFile(location.path(part.path), one_line(found)) if isinstance(found, str) else found


def _rows_near(
    location: Location, part: Part, schema: pa.Schema, names: list[str] | None, trial: int
) -> pa.Table | None:
    """Return the groups of rows that may hold a trial; None if only reading all can tell what is wrong."""
    try:
        with replace(location, retry=ONCE).open(part.path) as opened:
            file = pq.ParquetFile(opened, page_checksum_verification=True, pre_buffer=True)
            groups = [place for place in range(file.num_row_groups) if _may_hold(file, place, trial)]
            found = _rows_of(file, schema, names, groups)
    except (pa.ArrowException, OSError, TypeError, UnicodeDecodeError):
        return None
    return None if isinstance(found, str) else found


def _may_hold(file: pq.ParquetFile, place: int, trial: int) -> bool:
    """Whether the group of rows at a place may hold a trial; so may one that does not tell."""
    group = file.metadata.row_group(place)
    columns = (group.column(column) for column in range(group.num_columns))
    told = next((column.statistics for column in columns if column.path_in_schema == "trial"), None)
    return told is None or not told.has_min_max or bool(told.min <= trial <= told.max)


def _rows_of(
    file: pq.ParquetFile, schema: pa.Schema, names: list[str] | None, groups: list[int] | None = None
) -> pa.Table | str:
    """Return all rows of a file, or those of some groups; or how its schema differs."""
    of_groups = range(file.num_row_groups) if groups is None else groups
    table = file.read_row_groups(of_groups, columns=names, use_threads=False)
    # A whole table has the schema of the file; reading it again would take a tenth of the time.
    found = table.schema if names is None else file.schema_arrow
    difference = _difference(found, schema)
    if difference:
        return difference
    if names is None and found.equals(schema, check_metadata=True):
        return table
    # Concatenation needs the same order and metadata in every table.
    return table.select(names or schema.names).replace_schema_metadata(schema.metadata)


def _difference(found: pa.Schema, expected: pa.Schema) -> str | None:
    """Describe how a file's schema differs from the expected one; None if it does not."""
    if found.equals(expected, check_metadata=True):
        return None
    version = (found.metadata or {}).get(VERSION_KEY, b"none").decode(errors="replace")
    if version != str(SCHEMA_VERSION):
        return f"has store version {version}, not {SCHEMA_VERSION}"
    missing = [name for name in expected.names if name not in found.names]
    foreign = [name for name in found.names if name not in expected.names]
    twice = sorted({name for name in found.names if found.names.count(name) > 1})
    if twice:
        return f"has columns of one name: {', '.join(twice)}"
    retyped = [
        f"has {name} as {found.field(name).type} and not {expected.field(name).type}"
        for name in expected.names
        if name not in missing and found.field(name).type != expected.field(name).type
    ]
    reasons = [f"lacks {', '.join(missing)}"] if missing else []
    reasons += [f"has the foreign columns {', '.join(foreign)}"] if foreign else []
    return "; ".join(reasons + retyped) or None


def _stem(key: Key) -> str:
    return f"trial-{key.trial:06d}-seed-{key.seed}-attempt-{key.attempt}"


def _key(name: str) -> Key | None:
    match = _KEY.fullmatch(name.removesuffix(".parquet"))
    return Key(*map(int, match.groups())) if match else None
