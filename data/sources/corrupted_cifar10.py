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

from contextlib import suppress
from pathlib import Path

import numpy as np
import torch

from contrasweep.data.biased_files import (
    BiasedFiles,
    check_count,
    check_training,
    how_to_get,
    read_biased_files,
)
from contrasweep.data.encoded import DecodedImages, FileImages, check_labels
from contrasweep.data.images import LabelledImages
from contrasweep.data.root import DatasetDamaged, DatasetMissing, check_files
from contrasweep.data.spec import DatasetFamily, DatasetOption, DatasetSpec, Options, Split
from contrasweep.data.streaming import StreamedImages

NAME = "corrupted-cifar10"
PNG_FOLDER = "cifar10c"
PNG_SOURCE = (
    "https://github.com/kakaoenterprise/Learning-Debiased-Disentangled (CIFAR10C, by its link: unpack it)"
)
NPY_SOURCE = "https://github.com/alinlab/LfF (make_dataset.py makes it from CIFAR-10)"
CLASSES = 10
CLASS_NAMES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)

PERCENTS = {"0.5": "0.005", "1": "0.01", "2": "0.02", "5": "0.05"}
"""The shares of conflicting images: in percent, and as written in the names of the npy folders."""

NPY_ROWS = {"train": 50_000, "valid": 10_000}
NPY_FILES = ("images.npy", "attrs.npy")

REPORTED_TRAIN = {
    "0.5": (44_832, 228),
    "1": (44_527, 442),
    "2": (44_145, 887),
    "5": (42_820, 2_242),
}
"""Aligned and conflicting training images of the png folders, by percent."""
TEST_SIZE = 10_000

_SIDE = 32


def npy_folder(options: Options) -> str:
    """Return the folder of the npy layout for these options."""
    skewed = PERCENTS[str(options["percent"])]
    return f"CorruptedCIFAR10-Type{options['type']}-Skewed{skewed}-Severity{options['severity']}"


def _how(options: Options) -> str:
    percent = f"{options['percent']}pct"
    return how_to_get(PNG_FOLDER, PNG_SOURCE, f"{percent}/align, {percent}/conflict and test")


def _png_train(root: Path, options: Options) -> BiasedFiles:
    place = root / PNG_FOLDER / f"{options['percent']}pct"
    return read_biased_files(NAME, [place / "align", place / "conflict"], CLASSES, _how(options))


def _png_test(root: Path, options: Options) -> BiasedFiles:
    return read_biased_files(NAME, [root / PNG_FOLDER / "test"], CLASSES, _how(options))


def _check(root: Path, options: Options) -> None:
    if options["layout"] == "npy":
        files = {f"{part}/{file}": None for part in NPY_ROWS for file in NPY_FILES}
        check_files(NAME, root, npy_folder(options), files, NPY_SOURCE)
        for part, rows in NPY_ROWS.items():
            _mapped(root / npy_folder(options) / part / "images.npy", (rows, _SIDE, _SIDE, 3))
            _mapped(root / npy_folder(options) / part / "attrs.npy", (rows, 2))
        return
    train, how = _png_train(root, options), _how(options)
    reported = REPORTED_TRAIN[str(options["percent"])]
    check_training(NAME, train, CLASSES, reported, how, balanced=True)
    check_count(NAME, "test", _png_test(root, options).labels, CLASSES, TEST_SIZE, how, balanced=True)


def _describe(root: Path, options: Options) -> DatasetSpec:
    npy = options["layout"] == "npy"
    train, test = sum(REPORTED_TRAIN[str(options["percent"])]), TEST_SIZE
    if npy:
        train, test = NPY_ROWS["train"], NPY_ROWS["valid"]
    if not npy:
        # Loading the images reports what is missing; a list of all datasets must not fail here.
        with suppress(DatasetMissing):
            train, test = len(_png_train(root, options)), len(_png_test(root, options))
    return DatasetSpec(
        name=CORRUPTED_CIFAR10.full_name(options),
        summary=CORRUPTED_CIFAR10.summary,
        classes=CLASSES,
        channels=3,
        image_size=_SIDE,
        view_size=_SIDE,
        train_size=train,
        test_size=test,
        licence="none stated by the authors of CIFAR-10 (Krizhevsky 2009); research use is customary",
        source=NPY_SOURCE if npy else PNG_SOURCE,
        folder=npy_folder(options) if npy else PNG_FOLDER,
        bias_classes=CLASSES,
        class_names=CLASS_NAMES,
    )


def _read(root: Path, split: Split, options: Options) -> LabelledImages:
    if options["layout"] == "npy":
        return _read_npy(root / npy_folder(options) / ("train" if split == "train" else "valid"))
    found = _png_train(root, options) if split == "train" else _png_test(root, options)
    images = DecodedImages(FileImages(found.files), (3, _SIDE, _SIDE), resize=False)
    return LabelledImages(StreamedImages(images), found.labels, bias=found.bias)


def _read_npy(place: Path) -> LabelledImages:
    rows = NPY_ROWS[place.name]
    images = _array(place / "images.npy", (rows, _SIDE, _SIDE, 3))
    attributes = torch.from_numpy(_array(place / "attrs.npy", (rows, 2)).astype(np.int64))
    for column in attributes.T:
        check_labels(column, CLASSES, str(place / "attrs.npy"))
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()
    return LabelledImages(pixels, attributes[:, 0].contiguous(), bias=attributes[:, 1].contiguous())


def _array(file: Path, shape: tuple[int, ...]) -> np.ndarray:
    return np.array(_mapped(file, shape))


def _mapped(file: Path, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array that stays on disk, after checking that the file is complete.

    Raises:
        DatasetDamaged: the file is not an array, is truncated, or has another shape.
    """
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


CORRUPTED_CIFAR10 = DatasetFamily(
    name=NAME,
    summary="CIFAR-10 with a corruption that gives the class away in all but a few training images",
    describe=_describe,
    check=_check,
    read=_read,
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
