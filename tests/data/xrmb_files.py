"""The two MATLAB files of XRMB, with few rows."""

from pathlib import Path

import numpy as np
from scipy.io import savemat

from contrasweep.data.sources.xrmb import FILES, FOLDER

ROWS = 40 * 23


def write_xrmb(root: Path) -> np.ndarray:
    """Write files of few rows and return the labels; feature 0 of both views is the row, feature 1 the label.

    Labels 0 to 38 come 23 or 24 times each, mixed. The files also have the other published variables.
    """
    labels = np.random.default_rng(0).permutation(np.arange(ROWS) % 39).astype(np.uint8)
    views = []
    for width in (273, 112):
        view = np.zeros((ROWS, width), dtype=np.float32)
        view[:, 0], view[:, 1] = np.arange(ROWS), labels
        views.append(view)
    (root / FOLDER).mkdir(parents=True)
    few = {"XV1": views[0][:2], "XTe1": views[0][:3]}
    savemat(root / FOLDER / FILES[0], {"X1": views[0], **few}, do_compression=True)
    column = labels[:, None]
    second = {"X2": views[1], "trainLabel": column, "trainID": column, "tuneLabel": column[:2]}
    savemat(root / FOLDER / FILES[1], second, do_compression=True)
    return labels
