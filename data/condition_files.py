"""A continuous conditioning variable from a file: one row for each image, in the order of the dataset.

N images with D numbers each: features of another network (such as CLIP), measurements, coordinates.

`cifar10:condition=clip.npy` is CIFAR-10 with the rows of that file as the condition of the training images:
features of CLIP for a kernel-conditioned method, features of a bias-capturing network for FairKL. The test
images have no condition, because the final scores do not use one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from contrasweep.data.cache import while_unchanged
from contrasweep.data.condition_table import read_condition_table
from contrasweep.data.fingerprint import Listing, fingerprint_of_file
from contrasweep.data.named_rows import TABLE
from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.root import DatasetDamaged, file_of_option
from contrasweep.given_files import FileRefused, check_given
from contrasweep.names import few_quoted, unknown

NO_CONDITION = "none"

READ_AT_ONCE = 2**28
"""A .npy file of at most so many bytes is read whole before any work starts; of a larger one, its header."""

CONDITION_OPTIONS: Mapping[str, DatasetOption] = {
    "condition": DatasetOption(
        "file with a row of numbers for each training image (.npy, .safetensors, .parquet), as condition",
        str,
        NO_CONDITION,
        of_condition=True,
    )
}
"""The option of every family that can have a condition from a file."""

NAMED_CONDITION_OPTIONS: Mapping[str, DatasetOption] = {
    "condition": replace(
        CONDITION_OPTIONS["condition"],
        summary="file with numbers for each training image, as condition: a row for each (.npy, "
        ".safetensors, .parquet), or a table that names the images (.csv)",
    )
}
"""The same of a family whose images are files, which a table can name."""


def condition_facts(
    dataset: str,
    root: Path,
    options: Options,
    images: int,
    fingerprint: str = "",
    files: Listing | None = None,
) -> Mapping[str, Any]:
    """Return the fields of `DatasetSpec` that depend on the condition that the options may name.

    Args:
        dataset: the name of the dataset, for messages.
        root: the data root.
        options: contain the values of `CONDITION_OPTIONS`.
        images: the number of training images before any is left out.
        fingerprint: that of the images and of other given files; that of the condition's file is appended.
        files: the training images, if they are files that a table can name (`NAMED_CONDITION_OPTIONS`).

    Raises:
        DatasetMissing: there is no such file.
        DatasetDamaged: the file does not have the format of its ending, or not one row for each image, or
            holds a value that is not finite (not looked for in a .npy file larger than `READ_AT_ONCE`).
    """
    file = _file(root, options)
    if file is None:
        return {"fingerprint": fingerprint}
    seen = _looked_at(file, _named(file, files))
    if seen.rows != images:
        raise DatasetDamaged(
            f"dataset {dataset!r}: {file} holds a condition for {seen.rows:,} images, but there are "
            f"{images:,} training images; it needs a row for each, in the dataset's order"
        )
    if seen.fault:
        raise DatasetDamaged(seen.fault)
    return {
        "condition_dim": seen.width,
        "condition_name": f"the rows of {file.name}",
        "condition_spread": seen.spread,
        "fingerprint": fingerprint + fingerprint_of_file(file),
    }


def training_condition(
    root: Path, options: Options, images: int, files: Listing | None = None
) -> Tensor | None:
    """Return the condition that the options name, float32 ``(images, D)``; None if they name none.

    The arguments are as in `condition_facts`.

    Raises:
        DatasetMissing: there is no such file.
        DatasetDamaged: the file does not have the format of its ending, has another number of rows, or holds
            a value that is not finite.
    """
    file = _file(root, options)
    if file is None:
        return None
    named = _named(file, files)
    if named is None:
        return read_condition(file, images)
    condition = read_condition_table(file, named)
    if fault := _not_finite(file, condition):
        raise DatasetDamaged(fault)
    return condition


def read_condition(path: Path, images: int, columns: Sequence[str] = ()) -> Tensor:
    """Read a continuous condition from a .npy, .safetensors or .parquet file.

    Args:
        path: the file. A .npy file and the tensor of a .safetensors file hold ``(N, D)`` or ``(N,)``. A
            .parquet file has columns of numbers, or of lists of numbers of equal length.
        images: N, the number of images of the dataset.
        columns: the columns to read (.parquet; default: all), or the name of the tensor (.safetensors; not
            needed if there is only one).

    Returns:
        float32 ``(N, D)``.

    Raises:
        DatasetDamaged: the file is missing or does not have the format of its ending, a column is missing or
            is not numeric, the number of rows is not ``images``, or a value is not finite.
    """
    condition = _read(path, columns)
    if len(condition) != images:
        raise DatasetDamaged(
            f"{path} holds a condition for {len(condition):,} images, but there are {images:,}"
        )
    fault = _not_finite(path, condition)
    if fault:
        raise DatasetDamaged(fault)
    return condition


def _not_finite(path: Path, condition: Tensor) -> str:
    """Say which rows hold a value that is not finite; empty if none does."""
    broken = (~condition.isfinite().all(dim=1)).nonzero()[:, 0]
    if not len(broken):
        return ""
    return (
        f"{path}: {len(broken):,} rows hold NaN, Inf or numbers beyond float32, the first is "
        f"row {int(broken[0])}"
    )


def _file(root: Path, options: Options) -> Path | None:
    given = str(options["condition"])
    if given == NO_CONDITION:
        return None
    return file_of_option(root, "condition", given, "and holds a row of numbers for each training image")


class _Seen(NamedTuple):
    """What is known of a file before any work starts.

    Attributes:
        rows: how many it has.
        width: how many numbers a row has.
        fault: what is wrong with the numbers; empty if nothing is.
        spread: the mean squared distance of two rows; None of a file of which only the header was read.
    """

    rows: int
    width: int
    fault: str = ""
    spread: float | None = None

    @classmethod
    def of(cls, path: Path, condition: Tensor) -> "_Seen":
        """Return what is known of a file that was read."""
        # Two rows drawn independently differ by twice the variance on average.
        spread = 2 * float(condition.var(dim=0, correction=0).sum())
        return cls(len(condition), condition.shape[1], _not_finite(path, condition), spread)


def _named(file: Path, images: Listing | None) -> Listing | None:
    """Return the images whose names a condition's file gives; None of a file with a row for each image."""
    return images if file.suffix == TABLE else None


@while_unchanged(8)
def _looked_at(path: Path, named: Listing | None) -> _Seen:
    if named is not None:
        return _Seen.of(path, read_condition_table(path, named))
    if path.suffix == ".npy" and path.stat().st_size > READ_AT_ONCE:
        return _Seen(*_rows_and_width(path, _load_npy(path, "r").shape))
    return _Seen.of(path, _read(path, ()))


def _read(path: Path, columns: Sequence[str]) -> Tensor:
    """Return the contents of a file, `(N, D)`, for any N."""
    if path.suffix not in _READERS:
        named = (
            "; only of image-folder, whose images have names, also from .csv" if path.suffix == TABLE else ""
        )
        raise DatasetDamaged(f"{path}: a condition is read from {', '.join(_READERS)}{named}")
    try:
        check_given(path)
    except FileRefused as error:
        raise DatasetDamaged(str(error)) from None
    if columns and path.suffix == ".npy":
        raise DatasetDamaged(f"{path} has no columns to choose from, given {few_quoted(columns)}")
    condition = _READERS[path.suffix](path, columns)
    return condition.view(_rows_and_width(path, tuple(condition.shape)))


def _rows_and_width(path: Path, shape: tuple[int, ...]) -> tuple[int, int]:
    rows, *widths = (*shape, 1) if len(shape) == 1 else shape or (0,)
    if len(widths) != 1 or not widths[0]:
        raise DatasetDamaged(f"{path}: a condition is (N, D) or (N,), got {shape}")
    return rows, widths[0]


def _load_npy(path: Path, mapped: Literal["r"] | None = None) -> np.ndarray:
    try:
        return np.asarray(np.load(path, mmap_mode=mapped, allow_pickle=False))
    except Exception as error:  # on a damaged header, NumPy raises nearly everything
        why = " ".join(str(error).split()) or type(error).__name__
        raise DatasetDamaged(f"{path} is not an array of numbers: {why}") from error


def _read_safetensors(path: Path, columns: Sequence[str]) -> Tensor:
    from safetensors import SafetensorError, safe_open

    if len(columns) > 1:
        raise DatasetDamaged(f"{path}: a condition is one tensor, given {few_quoted(columns)}")
    try:
        with safe_open(path, framework="pt") as file:
            names = sorted(file.keys())
            if not names:
                raise DatasetDamaged(f"{path} holds no tensor")
            chosen = columns[0] if columns else names[0]
            if chosen not in names or (not columns and len(names) > 1):
                raise DatasetDamaged(f"{path}: name one of its tensors ({', '.join(names)})")
            stored = file.get_tensor(chosen)
    except SafetensorError as error:
        raise DatasetDamaged(f"{path} is not a safetensors file: {error}") from None
    if stored.is_complex():
        raise DatasetDamaged(f"{path}: {chosen!r} holds no real numbers but {stored.dtype}")
    return torch.Tensor(stored.float())


def _read_parquet(path: Path, columns: Sequence[str]) -> Tensor:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(path).names
        missing = [name for name in columns if name not in names]
        if missing:
            raise DatasetDamaged(f"{path}: {unknown('column', missing[0], tuple(names))}")
        table = pq.read_table(path, columns=list(columns) or None)
    except pa.ArrowException as error:
        raise DatasetDamaged(f"{path} is not a Parquet file: {error}") from None
    parts = [_parquet_column(table.column(name), f"{path}, column {name!r}") for name in table.column_names]
    return torch.cat(parts, dim=1)


def _parquet_column(column: Any, where: str) -> Tensor:
    import pyarrow.types as kinds

    stored = column.combine_chunks()
    is_list = any(
        test(stored.type) for test in (kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list)
    )
    values = stored.flatten() if is_list else stored
    if stored.null_count or values.null_count:
        raise DatasetDamaged(f"{where} lacks {stored.null_count or values.null_count:,} values")
    if is_list:
        lengths = set(stored.value_lengths().to_pylist())
        if len(lengths) != 1:
            raise DatasetDamaged(
                f"{where} holds lists of {min(lengths)} to {max(lengths)} numbers, not of one length"
            )
    return _numbers(values.to_numpy(zero_copy_only=False), where).reshape(len(stored), -1)


def _numbers(stored: np.ndarray, where: str) -> Tensor:
    if stored.dtype.kind not in "fiub":
        raise DatasetDamaged(f"{where} holds no real numbers but {stored.dtype}")
    # Values beyond float32 become Inf, which the caller reports.
    with np.errstate(over="ignore"):
        return torch.from_numpy(np.array(stored, dtype=np.float32))


_READERS: Mapping[str, Callable[[Path, Sequence[str]], Tensor]] = {
    ".npy": lambda path, columns: _numbers(_load_npy(path), str(path)),
    ".safetensors": _read_safetensors,
    ".parquet": _read_parquet,
}
