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

from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from contrasweep.data.multiview import MultiView
from contrasweep.data.root import DatasetDamaged, check_files
from contrasweep.data.seeds import numpy_generator
from contrasweep.data.sources.scene import unshuffled_folds
from contrasweep.data.spec import Options
from contrasweep.data.transductive import TransductiveFamily, TransductiveSpec

NAME = "xrmb"
FOLDER = "xrmb"
ACOUSTIC_FILE = "XRMBf2KALDI_window7_single1.mat"
ARTICULATORY_FILE = "XRMBf2KALDI_window7_single2.mat"
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
    place = root / FOLDER
    return _read(
        place, tuple((place / file).stat().st_mtime_ns for file in (ACOUSTIC_FILE, ARTICULATORY_FILE))
    )


@lru_cache(maxsize=1)
def _read(place: Path, changed: tuple[int, ...]) -> MultiView:
    """Read the objects; `changed`, the times of change of the files, keys the cache."""
    second = place / ARTICULATORY_FILE
    labels = _variable(second, "trainLabel").astype(np.int64).reshape(-1)
    rows = _first_rows(labels, second)
    order = numpy_generator("objects", NAME).permutation(len(rows))
    views = []
    for file, name, width in zip((place / ACOUSTIC_FILE, second), ("X1", "X2"), WIDTHS, strict=True):
        features = _variable(file, name)
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


def _variable(file: Path, name: str) -> np.ndarray:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        found = loadmat(file, variable_names=[name])
    except (MatReadError, NotImplementedError, ValueError, TypeError, OSError) as error:
        raise DatasetDamaged(f"{file} cannot be read as a MATLAB file: {error}") from None
    if name not in found:
        raise DatasetDamaged(f"{file} holds no variable {name}")
    return np.asarray(found[name])


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


def _is_labelled(labels: Tensor, fold: int) -> Tensor:
    return torch.from_numpy(unshuffled_folds(labels.numpy(), FOLDS) == fold)


def _describe(root: Path, options: Options) -> TransductiveSpec:
    objects = CLASSES * OF_EACH
    labelled = objects // FOLDS
    return TransductiveSpec(
        name=NAME,
        summary=XRMB.summary,
        classes=CLASSES,
        multi_label=False,
        views=tuple((width,) for width in WIDTHS),
        labelled=(labelled,) * FOLDS,
        unlabelled=(objects - labelled,) * FOLDS,
        licence="none stated with the features; of the University of Wisconsin's database, for research",
        source=SOURCE,
        folder=FOLDER,
    )


def _read_fold(root: Path, fold: int, options: Options) -> tuple[MultiView, MultiView]:
    whole = read_xrmb(root)
    assert whole.labels is not None
    is_labelled = _is_labelled(whole.labels, fold)
    unlabelled = whole.subset((~is_labelled).nonzero().flatten())
    return whole.subset(is_labelled.nonzero().flatten()), unlabelled.without_labels()


def _read_test(root: Path, fold: int, options: Options) -> Tensor:
    labels = read_xrmb(root).labels
    assert labels is not None
    return labels[~_is_labelled(labels, fold)]


def _check(root: Path, options: Options) -> None:
    check_files(NAME, root, FOLDER, {ACOUSTIC_FILE: None, ARTICULATORY_FILE: None}, SOURCE)


XRMB = TransductiveFamily(
    name=NAME,
    summary="50,000 frames of speech of 20 phones, 273 acoustic and 112 articulatory features, 250 labelled",
    describe=_describe,
    check=_check,
    read=_read_fold,
    read_test=_read_test,
)
