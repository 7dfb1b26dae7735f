"""MATLAB files that cannot be read are refused in words, whatever scipy makes of them."""

from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from contrasweep.data import DatasetDamaged
from contrasweep.data.matlab import matlab_variable


@pytest.mark.parametrize("compressed", [True, False])
def test_a_file_that_was_cut_off_is_named(compressed: bool, tmp_path: Path) -> None:
    file, paths = tmp_path / "mine.mat", np.array([["a/1.jpg"], ["b/2.jpg"]], dtype=object)
    savemat(file, {"paths": paths}, do_compression=compressed)
    whole = file.read_bytes()
    assert [cell.item() for cell in matlab_variable(file, "paths").flat] == ["a/1.jpg", "b/2.jpg"]
    for length in range(0, len(whole), 7):
        file.write_bytes(whole[:length])
        with pytest.raises(DatasetDamaged, match=r"mine\.mat (cannot be read|holds no variable)"):
            matlab_variable(file, "paths")


def test_changed_bytes_of_a_compressed_file_are_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.mat"
    savemat(file, {"x": np.arange(100.0)}, do_compression=True)
    damaged = bytearray(file.read_bytes())
    damaged[200:240] = bytes(40)
    file.write_bytes(damaged)
    with pytest.raises(DatasetDamaged, match=r"mine\.mat cannot be read as a MATLAB file: Error -3"):
        matlab_variable(file, "x")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetDamaged, match=r"mine\.mat cannot be read"):
        matlab_variable(tmp_path / "mine.mat", "x")
