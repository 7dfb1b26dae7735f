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

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contrasweep.data.encoded import header_of
from contrasweep.data.images import LabelledImages
from contrasweep.data.root import Archive, DatasetMissing
from contrasweep.data.sources.biased_files import check_count, check_training, is_conflicting, list_biased
from contrasweep.data.sources.listed_images import ListedImages
from contrasweep.data.spec import DatasetOption, DatasetSpec, Options, Split, family_of

ARCHIVE = Archive(
    "bffhq",
    "https://github.com/kakaoenterprise/Learning-Debiased-Disentangled (BFFHQ, by its link: unpack it)",
    folder="bffhq",
    holds="0.5pct/align, 0.5pct/conflict, valid and test",
)

REPORTED_TRAIN = (19_104, 96)
"""Aligned and conflicting training images."""
REPORTED_TEST = {"conflict": 500, "all": 1_000, "valid": 1_000}


def _train(root: Path) -> ListedImages:
    place = root / ARCHIVE.folder / "0.5pct"
    return list_biased(ARCHIVE, [place / "align", place / "conflict"], 2)


def _test(root: Path, options: Options) -> ListedImages:
    folder = "valid" if options["test"] == "valid" else "test"
    found = list_biased(ARCHIVE, [root / ARCHIVE.folder / folder], 2)
    if options["test"] != "conflict":
        return found
    return found.subset(is_conflicting(found).nonzero().flatten().tolist())


def _check(root: Path, options: Options) -> None:
    train, test, chosen = _train(root), _test(root, options), str(options["test"])
    check_training(ARCHIVE, train, 2, REPORTED_TRAIN, balanced=False)
    kind = {"conflict": "bias-conflicting test", "all": "test", "valid": "validation"}[chosen]
    check_count(ARCHIVE, kind, test.labels, 2, REPORTED_TEST[chosen], balanced=False)
    _size(train)


def _vary(root: Path, options: Options) -> Mapping[str, Any]:
    try:
        train, test = _train(root), _test(root, options)
    except DatasetMissing:
        # Loading the images reports what is missing; a list of all datasets must not fail here.
        return {"train_size": sum(REPORTED_TRAIN), "test_size": REPORTED_TEST[str(options["test"])]}
    return {"image_size": _size(train), "train_size": len(train), "test_size": len(test)}


def _read(root: Path, split: Split, options: Options) -> LabelledImages:
    train = _train(root)
    return (train if split == "train" else _test(root, options)).opened(_size(train))


def _size(train: ListedImages) -> int:
    """Return the height of the first image."""
    return header_of(train.files[0].read_bytes(), str(train.files[0])).height


BFFHQ = family_of(
    DatasetSpec(
        name="bffhq",
        summary="faces, young or old, "
        "whose gender gives the age away in all but 0.5 % of the training images",
        classes=2,
        channels=3,
        image_size=128,
        # As released: the images are enlarged.
        view_size=224,
        train_size=sum(REPORTED_TRAIN),
        test_size=REPORTED_TEST["conflict"],
        licence="images from FFHQ: each its author's licence, the set CC BY-NC-SA 4.0 (Karras et al. 2019)",
        source=ARCHIVE.source,
        folder=ARCHIVE.folder,
        bias_classes=2,
        class_names=("age 0", "age 1"),
    ),
    check=_check,
    read=_read,
    vary=_vary,
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
