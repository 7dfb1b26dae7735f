"""Biased FFHQ: faces with an age that correlates with gender in training, but not in the test.

Source: Kim et al., "BiaSwap" (ICCV 2021); released with Lee et al., "Learning Debiased Representation via
Disentangled Feature Augmentation" (NeurIPS 2021), and used by FairKL (Barbano et al. 2023, B.2.3).

Folders and names are those that the released code of both papers and of FairKL reads:
`0.5pct/align/CLASS/`, `0.5pct/conflict/CLASS/`, `valid/` and `test/`, with files `ID_AGE_GENDER.png`. As in
that code, only test images with two different numbers count. The archive was not available, so three facts
are not checked: the number of images (papers report 19,104 aligned and 96 conflicting training images, and
1,000 in each of `valid` and `test`; a folder with far fewer is refused), their size of 128 pixels, and which
age and gender have the number 0.
"""

from pathlib import Path

from contrasweep.data.biased_files import (
    BiasedFiles,
    check_count,
    check_training,
    how_to_get,
    read_biased_files,
)
from contrasweep.data.decoding import CorruptImage, read_header
from contrasweep.data.encoded import DecodedImages, FileImages
from contrasweep.data.images import LabelledImages
from contrasweep.data.root import DatasetDamaged, DatasetMissing
from contrasweep.data.spec import DatasetFamily, DatasetOption, DatasetSpec, Options, Split
from contrasweep.data.streaming import StreamedImages

NAME = "bffhq"
FOLDER = "bffhq"
VIEW_SIZE = 224
"""Height and width of the network's input, as released: the images are enlarged."""
SOURCE = "https://github.com/kakaoenterprise/Learning-Debiased-Disentangled (BFFHQ, by its link: unpack it)"
HOW = how_to_get(FOLDER, SOURCE, "0.5pct/align, 0.5pct/conflict, valid and test")

REPORTED_TRAIN = (19_104, 96)
"""Aligned and conflicting training images."""
REPORTED_TEST = {"conflict": 500, "all": 1_000, "valid": 1_000}

_REPORTED_SIZE = 128
_AGES = ("age 0", "age 1")


def _train(root: Path) -> BiasedFiles:
    return read_biased_files(
        NAME, [root / FOLDER / "0.5pct" / kind for kind in ("align", "conflict")], 2, HOW
    )


def _test(root: Path, options: Options) -> BiasedFiles:
    chosen = options["test"]
    found = read_biased_files(NAME, [root / FOLDER / ("valid" if chosen == "valid" else "test")], 2, HOW)
    return found.only(found.conflicting) if chosen == "conflict" else found


def _check(root: Path, options: Options) -> None:
    train = _train(root)
    check_training(NAME, train, 2, REPORTED_TRAIN, HOW, balanced=False)
    chosen = str(options["test"])
    kind = {"conflict": "bias-conflicting test", "all": "test", "valid": "validation"}[chosen]
    check_count(NAME, kind, _test(root, options).labels, 2, REPORTED_TEST[chosen], HOW, balanced=False)
    _size(train)


def _describe(root: Path, options: Options) -> DatasetSpec:
    try:
        files = _train(root)
        size, train, test = _size(files), len(files), len(_test(root, options))
    except DatasetMissing:
        # Loading the images reports what is missing; a list of all datasets must not fail here.
        size, train, test = _REPORTED_SIZE, sum(REPORTED_TRAIN), REPORTED_TEST[str(options["test"])]
    return DatasetSpec(
        name=BFFHQ.full_name(options),
        summary=BFFHQ.summary,
        classes=2,
        channels=3,
        image_size=size,
        view_size=VIEW_SIZE,
        train_size=train,
        test_size=test,
        licence="images from FFHQ: each its author's licence, the set CC BY-NC-SA 4.0 (Karras et al. 2019)",
        source=SOURCE,
        folder=FOLDER,
        bias_classes=2,
        class_names=_AGES,
    )


def _read(root: Path, split: Split, options: Options) -> LabelledImages:
    train = _train(root)
    found = train if split == "train" else _test(root, options)
    size = _size(train)
    images = DecodedImages(FileImages(found.files), (3, size, size), resize=True)
    return LabelledImages(StreamedImages(images), found.labels, bias=found.bias)


def _size(train: BiasedFiles) -> int:
    """Return the height of the first image."""
    try:
        return read_header(train.files[0].read_bytes()).height
    except CorruptImage as error:
        raise DatasetDamaged(f"corrupt image: {train.files[0]} cannot be decoded ({error})") from None


BFFHQ = DatasetFamily(
    name=NAME,
    summary="faces, young or old, whose gender gives the age away in all but 0.5 % of the training images",
    describe=_describe,
    check=_check,
    read=_read,
    options={
        "test": DatasetOption(
            "the test images: those in test/ with a gender unusual for their age (as released), or all; or "
            "valid/, to choose settings by",
            str,
            "conflict",
            choices=("conflict", "all", "valid"),
        )
    },
)
