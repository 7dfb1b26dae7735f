"""Any image dataset in Parquet, in the layout of the Hugging Face hub; local or in an object store.

A split is the files `SPLIT-*.parquet` of one folder, or of its folder `data`, or the one file `SPLIT.parquet`
there. They have a column of encoded images (`{bytes, path}`), and one of labels if the images have any. Names
of classes are read from the schema's metadata, if it has them.
"""

from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path

from contrasweep.data.fingerprint import BLOCKS, SplitFiles, fingerprint_of
from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.own_folders import PARQUET, TEST_NAMES, where_missing
from contrasweep.data.parquet import ParquetImages, ParquetPart, opened
from contrasweep.data.root import ROOT_VARIABLE, DatasetMissing, path_below
from contrasweep.data.sources.table_facts import AUTO, TableFacts
from contrasweep.data.sources.tables import Tables, family_of_tables
from contrasweep.data.spec import Split

HUB_FOLDER = "data"
"""The folder of a clone of a dataset's repository that usually holds its files."""

SOURCE = "huggingface.co/datasets (the Parquet files of a dataset's repository)"

BLOCKS_OF_A_BUCKET = 8
"""How many blocks of a split go into the fingerprint where each one read is a request to a server."""


def _find(root: Path, options: Options) -> Tables[ParquetPart]:
    path = str(options["path"])
    listing = _listing(root, path)
    return Tables(
        name=HUB_PARQUET.full_name(options),
        train=_parts(listing, options, "train"),
        test=_parts(listing, options, "test"),
        images=ParquetImages,
        summary=f"images of {path} in Parquet",
        folder=path,
        source=SOURCE,
        licence="see the dataset's card",
        drawn_as=f"{PARQUET} {Path(path).name}",
        fingerprint=_fingerprint,
    )


def _parts(listing: list[ParquetPart], options: Options, split: Split) -> tuple[ParquetPart, ...]:
    """Return the files of a split, by name; none of a test split that we cut from the training files.

    Raises:
        DatasetMissing: the files are missing.
    """
    wanted = str(options["test"])
    names = ("train",) if split == "train" else TEST_NAMES if wanted == AUTO else (wanted,)
    for name in names:
        # The second is what `to_parquet` of pandas or of the library `datasets` is usually told to write.
        for pattern in (f"{name}-*.parquet", f"{name}.parquet"):
            parts = tuple(part for part in listing if fnmatch(Path(part.path).name, pattern))
            if parts:
                return parts
    if split == "test" and wanted == AUTO:
        return ()
    there = ", ".join(Path(part.path).name for part in listing[:5]) or "no Parquet file"
    patterns = " or ".join(f"{name}-*.parquet" for name in names)
    raise DatasetMissing(
        f"dataset {HUB_PARQUET.full_name(options)!r} is incomplete: {options['path']} lacks {patterns}; "
        f"it holds {there}. Get it from {SOURCE}."
    )


def _listing(root: Path, path: str) -> list[ParquetPart]:
    """Return the Parquet files of a folder: a URI (s3://...), an absolute path, or one under the root."""
    from pyarrow import fs

    uri = path if "://" in path else str(path_below(root, path).absolute())
    if "://" not in path and not Path(uri).is_dir():
        raise _not_found(where_missing(root, path))
    try:
        filesystem, inner = fs.FileSystem.from_uri(uri)
        entries = filesystem.get_file_info(fs.FileSelector(inner))
        below = next((one for one in entries if not one.is_file and one.base_name == HUB_FOLDER), None)
        if below is not None and not any(one.path.endswith(".parquet") for one in entries):
            entries = filesystem.get_file_info(fs.FileSelector(below.path))
    except (OSError, ValueError) as error:
        raise _not_found(f"{uri} cannot be listed ({error})") from error
    return [
        ParquetPart(filesystem, entry.path, entry.size, entry.mtime_ns or 0)
        for entry in sorted(entries, key=lambda entry: str(entry.path))
        if entry.is_file and entry.path.endswith(".parquet")
    ]


@lru_cache(maxsize=16)
def _fingerprint(train: tuple[ParquetPart, ...], test: tuple[ParquetPart, ...], _: TableFacts) -> str:
    """Return the hash of names and sizes of the files, and of blocks of their contents.

    Raises:
        DatasetDamaged: a file cannot be read.
    """
    local = train[0].filesystem.type_name == "local"
    blocks = BLOCKS if local else BLOCKS_OF_A_BUCKET
    return fingerprint_of(_files(train), _files(test) if test else None, blocks)


def _files(parts: tuple[ParquetPart, ...]) -> SplitFiles:
    return SplitFiles(
        [Path(p.path).name for p in parts], [p.size for p in parts], lambda *b: _block(parts, *b)
    )


def _block(parts: tuple[ParquetPart, ...], row: int, start: int, count: int) -> bytes:
    with opened(parts[row]) as file:
        file.seek(start)
        return bytes(file.read(count))


def _not_found(why: str) -> DatasetMissing:
    return DatasetMissing(
        f"dataset {PARQUET!r} not found: {why}. Give path= an absolute path, one under the data root "
        f"(--data-root DIR or {ROOT_VARIABLE}), or a URI such as s3://bucket/folder. Get it from {SOURCE}."
    )


HUB_PARQUET = family_of_tables(
    name=PARQUET,
    summary="any images in Parquet as the Hugging Face hub has them, labels or none, local or s3://",
    options={
        "path": DatasetOption("folder of the files: absolute, under the data root, or a URI", str, None),
        "test": DatasetOption("which files are the test split", str, AUTO, choices=(AUTO, *TEST_NAMES)),
    },
    find=_find,
)
