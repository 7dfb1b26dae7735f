"""XRMB: frames of speech, as acoustic and as articulatory features, with the spoken phone (HeroCon).

Sources: Westbury, X-ray microbeam speech production database (1994), in the features of Wang et al., "On Deep
Multi-View Representation Learning" (ICML 2015); Zheng et al., "Contrastive Learning with Complex
Heterogeneity" (KDD 2022), Section 4.3 and its released code.

The files were not available. These facts come from public code that reads them, including HeroCon's: scipy
reads both files, so they do not have MATLAB's HDF5 format (v7.3). `..._single1.mat` holds `X1` (1,429,236 x
273, float32); `..._single2.mat` holds `X2` (1,429,236 x 112) and `trainLabel` (uint8, one for each row).
Their sizes in bytes are unknown. As in the released code, the classes are the labels 0 to 19, and the objects
are the *first* 2,500 rows of each (the paper says that they are drawn); the 200 stratified folds take the
shuffled objects in order.
"""

from pathlib import Path

import numpy as np
import torch

from contrasweep.data.cache import while_unchanged
from contrasweep.data.matlab import matlab_variable
from contrasweep.data.root import DatasetDamaged, check_files
from contrasweep.data.seeds import numpy_generator
from contrasweep.data.sources.folds import fold_rows, table_family
from contrasweep.data.transductive import MultiView

NAME = FOLDER = "xrmb"
FILES = ("XRMBf2KALDI_window7_single1.mat", "XRMBf2KALDI_window7_single2.mat")
"""The acoustic and the articulatory features."""
SOURCE = "https://home.ttic.edu/~klivescu/XRMB_data/full/README (the two window7_single files it names)"

WIDTHS = (273, 112)
CLASSES = 20
OF_EACH = 2_500
FOLDS = 200
"""The number of folds; each fold has the labelled objects of one run."""


def read_xrmb(root: Path) -> MultiView:
    """Read the objects in their shuffled order: `OF_EACH` of each class in two views.

    This needs memory for the training features of one file, 1.6 GB; the result takes 77 MB.

    Raises:
        DatasetDamaged: a file is not a MATLAB file, lacks a variable, or has wrong contents.
    """
    return _read(*(root / FOLDER / file for file in FILES))


@while_unchanged(1)
def _read(first: Path, second: Path) -> MultiView:
    labels = matlab_variable(second, "trainLabel").astype(np.int64).reshape(-1)
    rows = _first_rows(labels, second)
    order = numpy_generator("objects", NAME).permutation(len(rows))
    views = []
    for file, name, width in zip((first, second), ("X1", "X2"), WIDTHS, strict=True):
        features = matlab_variable(file, name)
        if features.shape != (len(labels), width):
            found = " x ".join(map(str, features.shape))
            raise DatasetDamaged(
                f"{file}: {name} is {found}, XRMB has {len(labels)} x {width} for its labels"
            )
        # A copy of the rows, so that the whole matrix can be freed before the next is read.
        views.append(torch.from_numpy(features[rows[order]].astype(np.float32)))
        del features
        if not bool(views[-1].isfinite().all()):
            raise DatasetDamaged(f"{file}: {name} holds a value that is not finite")
    return MultiView(tuple(views), torch.from_numpy(labels[rows[order]]))


def _first_rows(labels: np.ndarray, file: Path) -> np.ndarray:
    """Return the first `OF_EACH` rows of every class, class by class."""
    drawn = []
    for label in range(CLASSES):
        members = np.flatnonzero(labels == label)[:OF_EACH]
        if len(members) < OF_EACH:
            raise DatasetDamaged(
                f"{file}: label {label} has {len(members):,} rows, {OF_EACH:,} of each are needed"
            )
        drawn.append(members)
    return np.concatenate(drawn)


XRMB = table_family(
    name=NAME,
    summary="50,000 frames of speech of 20 phones, 273 acoustic and 112 articulatory features, 250 labelled",
    facts=lambda options: {
        "classes": CLASSES,
        "views": tuple((width,) for width in WIDTHS),
        "labelled": (CLASSES * OF_EACH // FOLDS,) * FOLDS,
        "unlabelled": (CLASSES * OF_EACH - CLASSES * OF_EACH // FOLDS,) * FOLDS,
        "licence": "none stated with the features; of the University of Wisconsin's database, for research",
        "source": SOURCE,
        "folder": FOLDER,
    },
    check=lambda root, options: check_files(NAME, root, FOLDER, dict.fromkeys(FILES), SOURCE),
    read=lambda root, options: read_xrmb(root),
    labelled=lambda labels, fold: fold_rows(labels, FOLDS, fold),
    options={},
)
