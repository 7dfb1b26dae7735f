"""A continuous conditioning variable from a file: one row for each image, in the order of the dataset.

N images with D numbers each: features of another network (such as CLIP), measurements, coordinates.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor

from contrasweep.data.names import first_few, unknown


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
        ValueError: the file is missing or does not have the format of its ending, a column is missing or is
            not numeric, the number of rows is not ``images``, or a value is not finite.
    """
    condition = _read(path, columns)
    if len(condition) != images:
        raise ValueError(f"{path} holds a condition for {len(condition):,} images, but there are {images:,}")
    broken = (~condition.isfinite().all(dim=1)).nonzero()[:, 0]
    if len(broken):
        raise ValueError(
            f"{path}: {len(broken):,} rows hold NaN, Inf or numbers beyond float32, the first is "
            f"row {int(broken[0])}"
        )
    return condition


def condition_shape(path: Path) -> tuple[int, int]:
    """Return the number of rows in a file for `read_condition`, and the number of values in a row.

    Of a .npy file, only the header is read.

    Raises:
        ValueError: see `read_condition`.
    """
    if path.suffix != ".npy" or not path.is_file():
        whole = _read(path, ())
        return len(whole), whole.shape[1]
    try:
        shape = np.load(path, mmap_mode="r", allow_pickle=False).shape
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} is not an array of numbers: {error}") from None
    return _rows_and_width(path, shape)


def _read(path: Path, columns: Sequence[str]) -> Tensor:
    """Return the contents of a file, `(N, D)`, for any N."""
    if path.suffix not in _READERS:
        raise ValueError(f"{path}: a condition is read from {', '.join(_READERS)}")
    if not path.is_file():
        raise ValueError(f"{path} is not there, or no file")
    if columns and path.suffix == ".npy":
        raise ValueError(f"{path} has no columns to choose from, given {first_few(columns)}")
    condition = _READERS[path.suffix](path, columns)
    return condition.view(_rows_and_width(path, tuple(condition.shape)))


def _rows_and_width(path: Path, shape: tuple[int, ...]) -> tuple[int, int]:
    rows, *widths = (*shape, 1) if len(shape) == 1 else shape or (0,)
    if len(widths) != 1 or not widths[0]:
        raise ValueError(f"{path}: a condition is (N, D) or (N,), got {shape}")
    return rows, widths[0]


def _read_npy(path: Path, columns: Sequence[str]) -> Tensor:
    try:
        stored = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} is not an array of numbers: {error}") from None
    return _numbers(stored, str(path))


def _read_safetensors(path: Path, columns: Sequence[str]) -> Tensor:
    from safetensors import SafetensorError, safe_open

    if len(columns) > 1:
        raise ValueError(f"{path}: a condition is one tensor, given {first_few(columns)}")
    try:
        with safe_open(path, framework="pt") as file:
            names = sorted(file.keys())
            chosen = columns[0] if columns else names[0]
            if chosen not in names or (not columns and len(names) > 1):
                raise ValueError(f"{path}: name one of its tensors ({', '.join(names)})")
            stored = file.get_tensor(chosen)
    except SafetensorError as error:
        raise ValueError(f"{path} is not a safetensors file: {error}") from None
    if stored.is_complex():
        raise ValueError(f"{path}: {chosen!r} holds no real numbers but {stored.dtype}")
    return torch.Tensor(stored.float())


def _read_parquet(path: Path, columns: Sequence[str]) -> Tensor:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(path).names
        missing = [name for name in columns if name not in names]
        if missing:
            raise ValueError(f"{path}: {unknown('column', missing[0], tuple(names))}")
        table = pq.read_table(path, columns=list(columns) or None)
    except pa.ArrowException as error:
        raise ValueError(f"{path} is not a Parquet file: {error}") from None
    parts = [_parquet_column(table.column(name), f"{path}, column {name!r}") for name in table.column_names]
    return torch.cat(parts, dim=1)


def _parquet_column(column: object, where: str) -> Tensor:
    import pyarrow as pa

    stored = column.combine_chunks()  # type: ignore[attr-defined]
    if stored.null_count:
        raise ValueError(f"{where} lacks {stored.null_count:,} values")
    rows = len(stored)
    if pa.types.is_list(stored.type) or pa.types.is_large_list(stored.type) or _is_fixed(stored.type):
        lengths = set(stored.value_lengths().to_pylist())
        if len(lengths) != 1:
            raise ValueError(
                f"{where} holds lists of {min(lengths)} to {max(lengths)} numbers, not of one length"
            )
        stored = stored.flatten()
    if stored.null_count:
        raise ValueError(f"{where} lacks {stored.null_count:,} values")
    return _numbers(stored.to_numpy(zero_copy_only=False), where).reshape(rows, -1)


def _is_fixed(kind: object) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_fixed_size_list(kind))


def _numbers(stored: np.ndarray, where: str) -> Tensor:
    if stored.dtype.kind not in "fiub":
        raise ValueError(f"{where} holds no real numbers but {stored.dtype}")
    # Values beyond float32 become Inf, which the caller reports.
    with np.errstate(over="ignore"):
        return torch.from_numpy(np.array(stored, dtype=np.float32))


_READERS: Mapping[str, Callable[[Path, Sequence[str]], Tensor]] = MappingProxyType(
    {".npy": _read_npy, ".safetensors": _read_safetensors, ".parquet": _read_parquet}
)
