"""9-class ImageNet: 42 classes of ImageNet in nine groups of animals, tested on ImageNet or on ImageNet-A.

Sources: Bahng et al., "Learning De-biased Representations with Biased Representations" (ICML 2020, ReBias),
whose released code (github.com/clovaai/rebias, datasets/imagenet.py) has the groups below; Hendrycks et al.,
"Natural Adversarial Examples" (CVPR 2021), for ImageNet-A; FairKL (Barbano et al. 2023, B.2.4).

ImageNet has the usual layout, `imagenet/train/WNID/*.JPEG` and `imagenet/val/WNID/*.JPEG` (the 50,000
validation images sorted into folders), and ImageNet-A that of its archive, `imagenet-a/WNID/*.jpg`. Files
come in the order of their paths, and so do the rows of a condition file (for FairKL, the features of a
bias-capturing network). ImageNet-A has 200 classes; 21 of them are among the 42, and none is a crab (from its
authors' evaluation code, and from lists of its folders in programs that read it).

The texture clusters of ImageNet's test images, for the unbiased accuracy, are in the file
`clusters/9class_imagenet_val.csv` of ReBias's released code (MIT licence), where it was checked: columns
`path` (`WNID/ILSVRC2012_val_NNNNNNNN.JPEG`), `category` and `cluster1` to `cluster3`, a row for each of the
2,100 images. The clusters come from three runs of k-means with 9 clusters, on Gram matrices of VGG-16's
features (Section 4.3 of its paper).
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from contrasweep.data.attributes import rows_of
from contrasweep.data.condition_files import (
    CONDITION_OPTIONS,
    NO_CONDITION,
    condition_facts,
    training_condition,
)
from contrasweep.data.decoding import LARGEST_SIDE
from contrasweep.data.facts import DatasetSpec
from contrasweep.data.fingerprint import fingerprint_of_file
from contrasweep.data.images import LabelledImages
from contrasweep.data.listing import names_below
from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.root import ROOT_VARIABLE, Archive, DatasetDamaged, DatasetMissing, path_below
from contrasweep.data.sources.listed_images import SIZE, ListedImages, list_classes
from contrasweep.data.spec import Split, family_of
from contrasweep.data.text_table import column_of, read_text_table

NAME = "imagenet9"
ENDINGS = (".jpeg", ".jpg", ".png")
SOURCE = "https://image-net.org (ILSVRC2012, train and val in a folder for each class)"
IMAGENET_A = Archive(
    NAME,
    "https://github.com/hendrycks/natural-adv-examples (imagenet-a.tar: unpack it)",
    folder="imagenet-a",
    holds="a folder of images for each class",
)

GROUPS: Mapping[str, tuple[str, ...]] = {
    "dog": ("n02085620", "n02099601", "n02106550", "n02106662", "n02110958"),
    "cat": ("n02123045", "n02123159", "n02123394", "n02123597", "n02124075"),
    "frog": ("n01641577", "n01644373", "n01644900"),
    "turtle": ("n01664065", "n01665541", "n01667114", "n01667778", "n01669191"),
    "bird": ("n01819313", "n01820546", "n01833805", "n01843383", "n01847000"),
    "monkey": ("n02486410", "n02487347", "n02488291", "n02488702", "n02492035"),
    "fish": ("n02607072", "n02640242", "n02641379", "n02643566", "n02655020"),
    "crab": ("n01978287", "n01978455", "n01980166", "n01981276"),
    "insect": ("n02174001", "n02177972", "n02190166", "n02206856", "n02219486"),
}
"""The WordNet numbers of ImageNet's classes in each group, in the order of the labels 0..8."""

LABEL_OF: Mapping[str, int] = {wnid: label for label, group in enumerate(GROUPS.values()) for wnid in group}

IN_IMAGENET_A = (
    *GROUPS["dog"],
    "n02123394",
    "n01641577",
    "n01669191",
    *GROUPS["bird"],
    "n02486410",
    "n02492035",
    "n02655020",
    *GROUPS["insect"],
)
"""The classes among the 42 that ImageNet-A has."""
A_CLASSES, A_IMAGES = 200, 7_500
"""The number of images in ImageNet-A."""

WITH_THE_TEST_IMAGES = "none"
NO_TEXTURES = "none"
TEXTURE_SOURCE = "https://github.com/clovaai/rebias (clusters/9class_imagenet_val.csv)"
CLUSTERINGS, CLUSTERS = 3, 9
"""The number of clusterings by texture, and of clusters in each, numbered 0..8."""

TRAIN_IMAGES_OF_A_CLASS = (732, 1_300)
"""The smallest and the largest number of training images in a class of ILSVRC2012."""
VAL_IMAGES_OF_A_CLASS = 50
VIEW_SIZE = 224


def _train(root: Path, options: Options) -> ListedImages:
    given = str(options["train"])
    own = given != WITH_THE_TEST_IMAGES
    folder = path_below(root, given) if own else _place(root, options) / "train"
    return _listed(_archive(options), folder, *TRAIN_IMAGES_OF_A_CLASS)


def _test(root: Path, options: Options) -> ListedImages:
    if options["test"] == "val":
        place = _place(root, options) / "val"
        return _listed(_archive(options), place, VAL_IMAGES_OF_A_CLASS, VAL_IMAGES_OF_A_CLASS)
    folder = root / IMAGENET_A.folder
    found = _listed(IMAGENET_A, folder, 1, None, IN_IMAGENET_A)
    # A folder with fewer classes is accepted: the counts of single classes are not published.
    classes = [entry for entry in folder.iterdir() if entry.is_dir()]
    images = sum(len(names_below(place, ENDINGS)) for place in classes)
    if len(classes) == A_CLASSES and images != A_IMAGES:
        raise IMAGENET_A.incomplete(
            f"{folder} holds {images:,} images of {A_CLASSES} classes, ImageNet-A has {A_IMAGES:,}"
        )
    return found


def _place(root: Path, options: Options) -> Path:
    return path_below(root, str(options["path"]))


def _archive(options: Options) -> Archive:
    holds = "train/WNID/ and val/WNID/ (path= is absolute or under DIR)"
    return Archive(NAME, SOURCE, str(options["path"]), holds)


def _listed(
    archive: Archive, folder: Path, fewest: int, most: int | None, classes: Sequence[str] = tuple(LABEL_OF)
) -> ListedImages:
    """List the images of some of the 42 classes; the number of images in each class is checked.

    Raises:
        DatasetMissing: a folder is missing, or holds fewer or more images than its class has.
    """
    if not folder.is_dir():
        raise archive.not_found(f"{folder} does not exist")
    lost = [wnid for wnid in sorted(classes) if not (folder / wnid).is_dir()]
    if lost:
        named = f"{', '.join(lost[:5])}{' and others' if len(lost) > 5 else ''}"
        raise archive.incomplete(f"{folder} lacks the classes {named}")
    classes = sorted(classes)
    found = list_classes(folder, classes, ENDINGS)
    for wnid, count in zip(classes, found.labels.bincount(minlength=len(classes)).tolist(), strict=True):
        if count < fewest or (most is not None and count > most):
            allowed = "more" if most is None else str(most) if fewest == most else f"{fewest} to {most:,}"
            raise archive.incomplete(
                f"{folder / wnid} holds {count:,} images, ImageNet has {allowed} of a class"
            )
    return replace(found, labels=torch.tensor([LABEL_OF[wnid] for wnid in classes])[found.labels])


def _textures_file(root: Path, options: Options) -> Path | None:
    """Return the file of texture clusters; None if the options want none.

    Raises:
        DatasetMissing: there is no such file.
    """
    if options["textures"] == NO_TEXTURES:
        return None
    file = path_below(root, str(options["textures"]))
    if not file.is_file():
        raise DatasetMissing(
            f"clusters of textures: {file} is not there, or no file. Get it from {TEXTURE_SOURCE}; "
            f"textures= is absolute, or under the data root (--data-root DIR or {ROOT_VARIABLE})."
        )
    return file


def _textures(root: Path, options: Options, test: ListedImages) -> Tensor | None:
    """Return the texture clusters of the test images, int64 ``(N, 3)``; None if the options want none.

    Raises:
        DatasetMissing: there is no such file.
        DatasetDamaged: the file does not have the published form, or lacks an image.
    """
    file = _textures_file(root, options)
    if file is None:
        return None
    table = read_text_table(file)
    names = [f"cluster{number}" for number in range(1, CLUSTERINGS + 1)]
    clusters = torch.tensor([_numbers(column_of(table, name, file).texts(), file) for name in names])
    wanted = [f"{image.parent.name}/{image.name}" for image in test.files]
    return clusters.T[rows_of(column_of(table, "path", file).texts(), wanted, file)].contiguous()


def _numbers(texts: Sequence[str], file: Path) -> list[int]:
    wrong = next((text for text in texts if not (text.isdecimal() and int(text) < CLUSTERS)), None)
    if wrong is not None:
        raise DatasetDamaged(f"{file}: a cluster is a number from 0 to {CLUSTERS - 1}, not {wrong!r}")
    return [int(text) for text in texts]


def _check(root: Path, options: Options) -> None:
    _train(root, options)
    _textures(root, options, _test(root, options))
    _vary(root, options)


def _vary(root: Path, options: Options) -> Mapping[str, Any]:
    facts: dict[str, Any] = {
        "fingerprint": "",
        "folder": str(options["path"]),
        "view_size": min(VIEW_SIZE, int(options["size"])),
    }
    if options["test"] != "val":
        facts["source"] = f"{SOURCE} and {IMAGENET_A.source}"
    if options["textures"] != NO_TEXTURES and options["test"] != "val":
        raise ValueError(
            f"dataset {NAME!r}: textures are known of ImageNet's own test images, give test=val with them"
        )
    textures = _textures_file(root, options)
    if textures is not None:
        facts |= {"groupings": CLUSTERINGS, "fingerprint": fingerprint_of_file(textures)}
    # Loading the images reports what is missing; a list of all datasets must not fail here.
    with suppress(DatasetMissing):
        facts["train_size"] = len(_train(root, options))
        facts["test_size"] = len(_test(root, options))
    if options["condition"] != NO_CONDITION:
        images = len(_train(root, options))
        facts.update(condition_facts(NAME, root, options, images, facts["fingerprint"]))
    return facts


def _read(root: Path, split: Split, options: Options) -> LabelledImages:
    if split == "train":
        found = _train(root, options)
        condition = training_condition(root, options, len(found))
        return replace(found, condition=condition).opened(int(options["size"]))
    found = _test(root, options)
    return replace(found.opened(int(options["size"])), groupings=_textures(root, options, found))


IMAGENET9 = family_of(
    DatasetSpec(
        name=NAME,
        summary="photographs of nine kinds of animals, "
        "whose textures are biased, from 42 classes of ImageNet",
        classes=len(GROUPS),
        channels=3,
        image_size=256,
        view_size=VIEW_SIZE,
        train_size=TRAIN_IMAGES_OF_A_CLASS[1] * len(LABEL_OF),
        test_size=VAL_IMAGES_OF_A_CLASS * len(LABEL_OF),
        licence="for non-commercial research (ImageNet's terms of access); ImageNet-A: MIT, of its code",
        source=SOURCE,
        folder="imagenet",
        class_names=tuple(GROUPS),
    ),
    check=_check,
    read=_read,
    vary=_vary,
    options={
        "test": DatasetOption(
            "the test images: ImageNet's own, or ImageNet-A", str, "val", choices=("val", IMAGENET_A.folder)
        ),
        "path": DatasetOption("ImageNet's folder: absolute, or under the data root", str, "imagenet"),
        "train": DatasetOption(
            "the folder of the training images, where they are others than those under path (stylised ones)",
            str,
            WITH_THE_TEST_IMAGES,
        ),
        "textures": DatasetOption(
            "ReBias's file of the test images' clusters of textures, for the unbiased accuracy",
            str,
            NO_TEXTURES,
        ),
        "size": DatasetOption(SIZE, int, 256, low=1, high=LARGEST_SIDE),
        **CONDITION_OPTIONS,
    },
)
