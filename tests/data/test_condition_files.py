from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

from contrasweep.data import read_condition

_VALUES = np.array([[0.5, 1.0], [-2.0, 3.0], [4.0, 5.0]])


def _write_npy(path: Path) -> None:
    np.save(path, _VALUES)


def _write_safetensors(path: Path) -> None:
    save_file({"clip": torch.from_numpy(_VALUES).bfloat16()}, path)


def _write_columns(path: Path) -> None:
    pq.write_table(pa.table({"x": _VALUES[:, 0], "y": _VALUES[:, 1].astype(int)}), path)


def _write_lists(path: Path) -> None:
    pq.write_table(pa.table({"clip": [list(row) for row in _VALUES]}), path)


def _write_fixed_lists(path: Path) -> None:
    column = pa.array([list(row) for row in _VALUES], pa.list_(pa.float32(), 2))
    pq.write_table(pa.table({"clip": column}), path)


@pytest.mark.parametrize(
    ("write", "ending"),
    [
        (_write_npy, "npy"),
        (_write_safetensors, "safetensors"),
        (_write_columns, "parquet"),
        (_write_lists, "parquet"),
        (_write_fixed_lists, "parquet"),
    ],
)
def test_every_format_gives_the_same_condition(
    write: Callable[[Path], None], ending: str, tmp_path: Path
) -> None:
    path = tmp_path / f"condition.{ending}"
    write(path)
    found = read_condition(path, images=3)
    assert found.dtype == torch.float32
    assert found.tolist() == _VALUES.tolist()


def test_one_number_an_image_is_a_column(tmp_path: Path) -> None:
    np.save(tmp_path / "age.npy", np.array([3, 1, 2]))
    assert read_condition(tmp_path / "age.npy", images=3).tolist() == [[3.0], [1.0], [2.0]]


def test_columns_and_tensors_are_chosen_by_name(tmp_path: Path) -> None:
    table, tensors = tmp_path / "c.parquet", tmp_path / "c.safetensors"
    _write_columns(table)
    assert read_condition(table, 3, ["y", "x"]).tolist() == _VALUES[:, ::-1].tolist()
    with pytest.raises(ValueError, match=r"unknown column 'z'.* x, y"):
        read_condition(table, 3, ["z"])
    save_file({"a": torch.zeros(3, 1), "b": torch.ones(3, 1)}, tensors)
    assert read_condition(tensors, 3, ["b"]).tolist() == [[1.0]] * 3
    for chosen in ([], ["c"]):
        with pytest.raises(ValueError, match=r"name one of its tensors \(a, b\)"):
            read_condition(tensors, 3, chosen)


def test_the_wrong_length_is_refused(tmp_path: Path) -> None:
    _write_npy(tmp_path / "c.npy")
    with pytest.raises(ValueError, match=r"c\.npy holds a condition for 3 images, but there are 60,000"):
        read_condition(tmp_path / "c.npy", images=60_000)


@pytest.mark.parametrize("value", [np.nan, -np.inf, 1e39])
def test_values_that_are_not_finite_are_refused(value: float, tmp_path: Path) -> None:
    values = _VALUES.copy()
    values[1:, 1] = value
    np.save(tmp_path / "c.npy", values)
    with pytest.raises(ValueError, match=r"2 rows hold NaN, Inf .*the first is row 1"):
        read_condition(tmp_path / "c.npy", images=3)


@pytest.mark.parametrize("shape", [(3, 2, 1), (3, 0), ()])
def test_other_shapes_are_refused(shape: tuple[int, ...], tmp_path: Path) -> None:
    np.save(tmp_path / "c.npy", np.zeros(shape))
    with pytest.raises(ValueError, match=r"a condition is \(N, D\) or \(N,\), got"):
        read_condition(tmp_path / "c.npy", images=3)


def test_files_without_numbers_are_refused(tmp_path: Path) -> None:
    array, table = tmp_path / "c.npy", tmp_path / "c.parquet"
    np.save(array, np.array(["a", "b"]))
    with pytest.raises(ValueError, match=r"no real numbers but <U1"):
        read_condition(array, images=2)
    np.save(array, np.array([{}, {}]), allow_pickle=True)
    with pytest.raises(ValueError, match="not an array of numbers"):
        read_condition(array, images=2)
    pq.write_table(pa.table({"x": ["a", "b"]}), table)
    with pytest.raises(ValueError, match=r"column 'x' holds no real numbers"):
        read_condition(table, images=2)
    pq.write_table(pa.table({"x": [[1.0], [1.0, 2.0]]}), table)
    with pytest.raises(ValueError, match=r"column 'x' holds lists of 1 to 2 numbers"):
        read_condition(table, images=2)
    for holes in ([1.0, None], [[1.0], [None]], [[1.0], None]):
        pq.write_table(pa.table({"x": holes}), table)
        with pytest.raises(ValueError, match=r"column 'x' lacks 1 values"):
            read_condition(table, images=2)


@pytest.mark.parametrize("ending", ["npy", "safetensors", "parquet"])
def test_a_damaged_file_is_named(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"c.{ending}"
    with pytest.raises(ValueError, match=rf"c\.{ending}: there is no such file"):
        read_condition(path, images=3)
    for content in (b"", b"nothing of the kind"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"c\.{ending} is not a"):
            read_condition(path, images=3)


def test_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"read from \.npy, \.safetensors, \.parquet"):
        read_condition(tmp_path / "c.csv", images=3)
    _write_npy(tmp_path / "c.npy")
    with pytest.raises(ValueError, match=r"no columns to choose from, given 'x'"):
        read_condition(tmp_path / "c.npy", 3, ["x"])
