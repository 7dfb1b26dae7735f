"""Variables of MATLAB files, before version 7.3 of the format; scipy reads them."""

import zlib
from pathlib import Path

import numpy as np

from contrasweep.data.root import DatasetDamaged


def matlab_variable(file: Path, name: str, *, squeeze: bool = False) -> np.ndarray:
    """Return one variable of a MATLAB file.

    Args:
        file: the file.
        name: the variable.
        squeeze: leave out axes of length one, also inside structs and cells.

    Raises:
        DatasetDamaged: the file cannot be read, is not a MATLAB file or is cut off, or lacks the variable.
    """
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    # What scipy raises at files that were cut off, or of which single bits were changed.
    unreadable = (
        MatReadError,
        OSError,
        ValueError,
        TypeError,
        LookupError,
        NotImplementedError,
        UnboundLocalError,
        zlib.error,
    )
    try:
        found = loadmat(str(file), variable_names=[name], squeeze_me=squeeze)
    except unreadable as error:
        raise DatasetDamaged(f"{file} cannot be read as a MATLAB file: {error}") from None
    if name not in found:
        raise DatasetDamaged(f"{file} holds no variable {name}")
    return np.asarray(found[name])
