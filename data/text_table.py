"""Tables in CSV files, read as text; the caller interprets the texts of a column."""

import csv
import io
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contrasweep.data.root import DatasetDamaged
from contrasweep.given_files import FileRefused, check_given
from contrasweep.names import few_quoted, unknown

MOST_BYTES = 4 * 2**30
"""The size of the largest table that is read."""

MOST_COLUMNS = 10_000
"""The number of columns of the widest table that is read."""

_LONGEST_HEADER = 2**20


@dataclass(frozen=True)
class TextColumn:
    """A column that stores each distinct text once: row ``i`` holds ``values[codes[i]]``.

    Attributes:
        codes: int64 ``(N,)``.
        values: the distinct texts, stripped of surrounding blanks, in the order of their first row.
    """

    codes: np.ndarray
    values: tuple[str, ...]

    def texts(self) -> list[str]:
        """Return the text of every row."""
        return [self.values[code] for code in self.codes.tolist()]


def read_text_table(path: Path) -> dict[str, TextColumn]:
    """Read a comma-separated file with a header. All values stay texts, and no text means "missing".

    Raises:
        DatasetDamaged: the file is missing, not a regular file, larger than `MOST_BYTES`, empty or not UTF-8,
            it has more than `MOST_COLUMNS` columns or names one twice, or a row has more or fewer cells than
            the header (the message names it).
    """
    from pyarrow import ArrowInvalid
    from pyarrow.csv import ConvertOptions, ReadOptions, read_csv

    names = _header(path)
    # One thread, so that the message about a wrong row has its number.
    reading = ReadOptions(use_threads=False, column_names=names, skip_rows=1)
    converting = ConvertOptions(column_types=dict.fromkeys(names, "string"), strings_can_be_null=False)
    try:
        table = read_csv(path, read_options=reading, convert_options=converting)
    except ArrowInvalid as error:
        raise DatasetDamaged(f"{path}: {error}") from None
    if not table.num_rows:
        raise DatasetDamaged(f"{path} has a header but no rows")
    return {name: _column(table.column(name)) for name in names}


def column_of(table: Mapping[str, TextColumn], name: str, path: Path, hint: str = "") -> TextColumn:
    """Return the column called ``name`` of a table that was read from ``path``.

    Raises:
        DatasetDamaged: there is no such column; the message gives the nearest, and the hint after it.
    """
    if name not in table:
        raise DatasetDamaged(f"{path}: {unknown('column', name, table)}{hint}")
    return table[name]


def _header(path: Path) -> list[str]:
    try:
        check_given(path, MOST_BYTES)
        with path.open(encoding="utf-8-sig", newline="") as file:
            # Not line by line: the first line of a file may be all of it.
            begin = file.read(_LONGEST_HEADER)
        names = [name.strip() for name in next(csv.reader(io.StringIO(begin, newline="")), [])]
    except FileRefused as error:
        raise DatasetDamaged(str(error)) from None
    except OSError as error:
        raise DatasetDamaged(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise DatasetDamaged(f"{path} is not text in UTF-8") from None
    except csv.Error as error:
        raise DatasetDamaged(f"{path}: its first line is no list of columns ({error})") from None
    if not names:
        raise DatasetDamaged(f"{path} is empty; its first line must name the columns")
    if len(names) > MOST_COLUMNS:
        raise DatasetDamaged(f"{path} has more than {MOST_COLUMNS:,} columns; allowed: at most so many")
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise DatasetDamaged(f"{path} names these columns more than once: {few_quoted(twice)}")
    return names


def _column(stored: object) -> TextColumn:
    from pyarrow import compute

    encoded = compute.utf8_trim_whitespace(stored).combine_chunks().dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return TextColumn(codes, tuple(encoded.dictionary.to_pylist()))
