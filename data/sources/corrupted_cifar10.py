"""Corrupted CIFAR-10: in training each class has its own corruption, in the test any of ten.

Sources: Nam et al., "Learning from Failure" (NeurIPS 2020), whose code makes it from CIFAR-10; Lee et al.,
"Learning Debiased Representation via Disentangled Feature Augmentation" (NeurIPS 2021), whose files FairKL
(Barbano et al. 2023, B.2.2) trains on.

Both layouts are those of the released code. `png` (Lee): `cifar10c/0.5pct/align/CLASS/`,
`0.5pct/conflict/CLASS/`, and `cifar10c/test/CLASS/`, with files `ID_CLASS_CORRUPTION.png`; `0.5pct/valid` is
not read. `npy` (Nam): `CorruptedCIFAR10-Type0-Skewed0.005-Severity4/`, with CIFAR-10's splits in `train` and
`valid`, as `images.npy` (N, 32, 32, 3) and `attrs.npy` (N, 2): class and corruption. In both, corruption c is
the usual one of class c. Folders, counts, types and severities of the npy files come from the code that makes
them. The png archive was not available, so two facts are not checked: the number of images (papers report
about 45,000 for training, and the 10,000 of CIFAR-10's test; a folder with far fewer is refused), and the
type and severity of the corruptions.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch

from contrasweep.data.encoded import check_labels
from contrasweep.data.images import LabelledImages
from contrasweep.data.root import Archive, DatasetDamaged, DatasetMissing, check_files
from contrasweep.data.sources.biased_files import check_count, check_training, list_biased
from contrasweep.data.sources.listed_images import ListedImages
from contrasweep.data.spec import DatasetOption, DatasetSpec, Options, Split, family_of

NAME = "corrupted-cifar10"
PNG_FOLDER = "cifar10c"
PNG_SOURCE = (
    "https://github.com/kakaoenterprise/Learning-Debiased-Disentangled (CIFAR10C, by its link: unpack it)"
)
NPY_SOURCE = "https://github.com/alinlab/LfF (make_dataset.py makes it from CIFAR-10)"
CLASSES = 10
CLASS_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

PERCENTS = {"0.5": "0.005", "1": "0.01", "2": "0.02", "5": "0.05"}
"""The shares of conflicting images: in percent, and as written in the names of the npy folders."""

NPY_ROWS = {"train": 50_000, "valid": 10_000}

REPORTED_TRAIN = {"0.5": (44_832, 228), "1": (44_527, 442), "2": (44_145, 887), "5": (42_820, 2_242)}
"""Aligned and conflicting training images of the png folders, by percent."""
TEST_SIZE = 10_000

_SIDE = 32
_NPY_SHAPES = {"images.npy": (_SIDE, _SIDE, 3), "attrs.npy": (2,)}


def npy_folder(options: Options) -> str:
    """Return the folder of the npy layout for these options."""
    skewed = PERCENTS[str(options["percent"])]
    return f"CorruptedCIFAR10-Type{options['type']}-Skewed{skewed}-Severity{options['severity']}"


def _archive(options: Options) -> Archive:
    percent = f"{options['percent']}pct"
    return Archive(NAME, PNG_SOURCE, PNG_FOLDER, f"{percent}/align, {percent}/conflict and test")


def _png(root: Path, split: Split, options: Options) -> ListedImages:
    percent = f"{options['percent']}pct"
    folders = ("test",) if split == "test" else (f"{percent}/align", f"{percent}/conflict")
    return list_biased(_archive(options), [root / PNG_FOLDER / folder for folder in folders], CLASSES)


def _check(root: Path, options: Options) -> None:
    if options["layout"] == "npy":
        files = {f"{part}/{file}": None for part in NPY_ROWS for file in _NPY_SHAPES}
        check_files(NAME, root, npy_folder(options), files, NPY_SOURCE)
        for file in files:
            _mapped(root / npy_folder(options) / file)
        return
    archive, reported = _archive(options), REPORTED_TRAIN[str(options["percent"])]
    check_training(archive, _png(root, "train", options), CLASSES, reported, balanced=True)
    test = _png(root, "test", options).labels
    check_count(archive, "test", test, CLASSES, TEST_SIZE, balanced=True)


def _vary(root: Path, options: Options) -> Mapping[str, Any]:
    if options["layout"] == "npy":
        sizes = {"train_size": NPY_ROWS["train"], "test_size": NPY_ROWS["valid"]}
        return {**sizes, "source": NPY_SOURCE, "folder": npy_folder(options)}
    # Loading the images reports what is missing; a list of all datasets must not fail here.
    with suppress(DatasetMissing):
        train, test = _png(root, "train", options), _png(root, "test", options)
        return {"train_size": len(train), "test_size": len(test)}
    return {"train_size": sum(REPORTED_TRAIN[str(options["percent"])]), "test_size": TEST_SIZE}


def _read(root: Path, split: Split, options: Options) -> LabelledImages:
    if options["layout"] == "npy":
        return _read_npy(root / npy_folder(options) / ("train" if split == "train" else "valid"))
    return _png(root, split, options).opened(_SIDE, resize=False)


def _read_npy(place: Path) -> LabelledImages:
    attributes = torch.from_numpy(np.array(_mapped(place / "attrs.npy"))).long()
    for column in attributes.T:
        check_labels(column, CLASSES, str(place / "attrs.npy"))
    pixels = torch.from_numpy(np.array(_mapped(place / "images.npy"))).permute(0, 3, 1, 2).contiguous()
    return LabelledImages(pixels, attributes[:, 0].contiguous(), bias=attributes[:, 1].contiguous())


def _mapped(file: Path) -> np.ndarray:
    """Return an array that stays on disk, after checking that the file is complete.

    Raises:
        DatasetDamaged: the file is not an array, is truncated, or has another shape.
    """
    shape = (NPY_ROWS[file.parent.name], *_NPY_SHAPES[file.name])
    try:
        stored = np.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DatasetDamaged(
            f"{file} is not an array of numbers, or only a part of one: {error}. Get it from {NPY_SOURCE}"
        ) from None
    if stored.dtype != np.uint8 or stored.shape != shape:
        raise DatasetDamaged(
            f"{file} must hold uint8 {shape}, has {stored.dtype} {stored.shape}. Get it from {NPY_SOURCE}"
        )
    return np.asarray(stored)


CORRUPTED_CIFAR10 = family_of(
    DatasetSpec(
        name=NAME,
        summary="CIFAR-10 with a corruption that gives the class away in all but a few training images",
        classes=CLASSES,
        channels=3,
        image_size=_SIDE,
        view_size=_SIDE,
        train_size=sum(REPORTED_TRAIN["0.5"]),
        test_size=TEST_SIZE,
        licence="none stated by the authors of CIFAR-10 (Krizhevsky 2009); research use is customary",
        source=PNG_SOURCE,
        folder=PNG_FOLDER,
        bias_classes=CLASSES,
        class_names=CLASS_NAMES,
    ),
    check=_check,
    read=_read,
    vary=_vary,
    options={
        "percent": DatasetOption(
            "bias-conflicting training images in percent", str, "0.5", choices=tuple(PERCENTS)
        ),
        "layout": DatasetOption(
            "the files of Lee et al. (png) or of Nam et al. (npy)", str, "png", choices=("png", "npy")
        ),
        "type": DatasetOption(
            "npy: weather and digital corruptions (0), or noises and blurs (1)", str, "0", choices=("0", "1")
        ),
        "severity": DatasetOption(
            "npy: how strong they are, in its folder's name", str, "4", choices=("1", "2", "3", "4")
        ),
    },
)
