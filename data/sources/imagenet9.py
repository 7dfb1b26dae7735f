"""9-class ImageNet: 42 classes of ImageNet in nine groups of animals, tested on ImageNet or on ImageNet-A.

Sources: Bahng et al., "Learning De-biased Representations with Biased Representations" (ICML 2020, ReBias),
whose released code (github.com/clovaai/rebias, datasets/imagenet.py) has the groups below; Hendrycks et al.,
"Natural Adversarial Examples" (CVPR 2021), for ImageNet-A; FairKL (Barbano et al. 2023, B.2.4).

ImageNet has the usual layout, `imagenet/train/WNID/*.JPEG` and `imagenet/val/WNID/*.JPEG` (the 50,000
validation images sorted into folders), and ImageNet-A that of its archive, `imagenet-a/WNID/*.jpg`. Files
come in the order of their paths, and so do the rows of a condition file (for FairKL, the features of a
bias-capturing network). ImageNet-A has 200 classes; 21 of them are among the 42, and none is a crab (from its
authors' evaluation code, and from lists of its folders in programs that read it). The archive was not
available, so the number of images of each class was not checked; in all there are 7,500.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

import torch

from contrasweep.data.conditioned import CONDITION_OPTIONS, NO_CONDITION, conditioned_spec, with_condition
from contrasweep.data.encoded import DecodedImages, FileImages
from contrasweep.data.images import LabelledImages
from contrasweep.data.root import ROOT_VARIABLE, DatasetMissing
from contrasweep.data.sources.texture_clusters import CLUSTERINGS, read_texture_clusters
from contrasweep.data.spec import DatasetFamily, DatasetOption, DatasetSpec, Options, Split
from contrasweep.data.streaming import StreamedImages

NAME = "imagenet9"
A_FOLDER = "imagenet-a"
EXTENSIONS = (".jpeg", ".jpg", ".png")
SOURCE = "https://image-net.org (ILSVRC2012, train and val in a folder for each class)"
A_SOURCE = "https://github.com/hendrycks/natural-adv-examples (imagenet-a.tar: unpack it)"

GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
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
)
"""The WordNet numbers of ImageNet's classes in each group, in the order of the labels 0..8."""

LABEL_OF: Mapping[str, int] = MappingProxyType(
    {wnid: label for label, group in enumerate(GROUPS.values()) for wnid in group}
)

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
NO_TEXTURES = "none"

TRAIN_IMAGES_OF_A_CLASS = (732, 1_300)
"""The smallest and the largest number of training images in a class of ILSVRC2012."""
VAL_IMAGES_OF_A_CLASS = 50
VIEW_SIZE = 224


@dataclass(frozen=True, eq=False)
class _Files:
    """Image files sorted by path, with their labels."""

    files: tuple[Path, ...]
    labels: torch.Tensor


def _train(root: Path, options: Options) -> _Files:
    return _listed(_place(root, options) / "train", *TRAIN_IMAGES_OF_A_CLASS, _how(options))


def _test(root: Path, options: Options) -> _Files:
    if options["test"] == "val":
        both = (VAL_IMAGES_OF_A_CLASS, VAL_IMAGES_OF_A_CLASS)
        return _listed(_place(root, options) / "val", *both, _how(options))
    how = _how_to_place(A_SOURCE, f"DIR/{A_FOLDER} holds a folder of images for each class")
    found = _listed(root / A_FOLDER, 1, None, how, IN_IMAGENET_A)
    _refuse_part_of_imagenet_a(root / A_FOLDER, how)
    return found


def _refuse_part_of_imagenet_a(folder: Path, how: str) -> None:
    """Refuse a folder with all classes of ImageNet-A but not all of its images.

    A folder with fewer classes is accepted: the counts of single classes are not published.

    Raises:
        DatasetMissing: images are missing.
    """
    classes = [entry for entry in folder.iterdir() if entry.is_dir()]
    if len(classes) != A_CLASSES:
        return
    images = sum(len(_images_of(place, place.stat().st_mtime_ns)) for place in classes)
    if images != A_IMAGES:
        raise DatasetMissing(
            f"dataset {NAME!r} is incomplete: {folder} holds {images:,} images of {A_CLASSES} classes, "
            f"ImageNet-A has {A_IMAGES:,}. {how}"
        )


def _place(root: Path, options: Options) -> Path:
    return root / Path(str(options["path"])).expanduser()


def _how(options: Options) -> str:
    holds = f"DIR/{options['path']} (path= is absolute or under DIR) holds train/WNID/ and val/WNID/"
    return _how_to_place(SOURCE, holds)


def _how_to_place(source: str, holds: str) -> str:
    return f"Get it from {source}; then pass --data-root DIR or set {ROOT_VARIABLE}=DIR, where {holds}."


def _listed(
    folder: Path, fewest: int, most: int | None, how: str, classes: Sequence[str] = tuple(LABEL_OF)
) -> _Files:
    """List the images of some of the 42 classes; the number of images in each class is checked.

    Raises:
        DatasetMissing: a folder is missing, or holds fewer or more images than its class has.
    """
    if not folder.is_dir():
        raise DatasetMissing(f"dataset {NAME!r} not found: {folder} does not exist. {how}")
    lost = [wnid for wnid in sorted(classes) if not (folder / wnid).is_dir()]
    if lost:
        named = f"{', '.join(lost[:5])}{' and others' if len(lost) > 5 else ''}"
        raise DatasetMissing(f"dataset {NAME!r} is incomplete: {folder} lacks the classes {named}. {how}")
    parts = {wnid: _images_of(folder / wnid, (folder / wnid).stat().st_mtime_ns) for wnid in sorted(classes)}
    for wnid, files in parts.items():
        if len(files) < fewest or (most is not None and len(files) > most):
            allowed = "more" if most is None else str(most) if fewest == most else f"{fewest} to {most:,}"
            raise DatasetMissing(
                f"dataset {NAME!r} is incomplete: {folder / wnid} holds {len(files):,} images, ImageNet has "
                f"{allowed} of a class. {how}"
            )
    labels = [LABEL_OF[wnid] for wnid, part in parts.items() for _ in part]
    return _Files(
        tuple(file for part in parts.values() for file in part), torch.tensor(labels, dtype=torch.int64)
    )


@lru_cache(maxsize=256)
def _images_of(folder: Path, changed: int) -> tuple[Path, ...]:
    """List the images of a class by name; the folder's time of change keys the cache."""
    return tuple(folder / name for name in sorted(os.listdir(folder)) if name.lower().endswith(EXTENSIONS))


def _check(root: Path, options: Options) -> None:
    _train(root, options)
    _textures(root, options, _test(root, options).files)
    _describe(root, options)


def _textures(root: Path, options: Options, images: Sequence[Path]) -> torch.Tensor | None:
    """Return the texture clusters of the test images, int64 ``(N, 3)``; None if the options want none."""
    if options["textures"] == NO_TEXTURES:
        return None
    return read_texture_clusters(root / Path(str(options["textures"])).expanduser(), images)


def _describe(root: Path, options: Options) -> DatasetSpec:
    size = int(options["size"])
    textured = options["textures"] != NO_TEXTURES
    if textured and options["test"] != "val":
        raise ValueError(
            f"dataset {NAME!r}: textures are known of ImageNet's own test images, give test=val with them"
        )
    train, test = TRAIN_IMAGES_OF_A_CLASS[1] * len(LABEL_OF), VAL_IMAGES_OF_A_CLASS * len(LABEL_OF)
    # Loading the images reports what is missing; a list of all datasets must not fail here.
    with suppress(DatasetMissing):
        train = len(_train(root, options).files)
        test = len(_test(root, options).files)
    spec = DatasetSpec(
        name=IMAGENET9.full_name(options),
        summary=IMAGENET9.summary,
        classes=len(GROUPS),
        channels=3,
        image_size=size,
        view_size=min(VIEW_SIZE, size),
        train_size=train,
        test_size=test,
        licence="for non-commercial research (ImageNet's terms of access); ImageNet-A: MIT, of its code",
        source=SOURCE if options["test"] == "val" else f"{SOURCE} and {A_SOURCE}",
        folder=str(options["path"]),
        groupings=CLUSTERINGS if textured else 0,
        class_names=tuple(GROUPS),
    )
    if options["condition"] == NO_CONDITION:
        return spec
    return conditioned_spec(spec, root, options, len(_train(root, options).files))


def _read(root: Path, split: Split, options: Options) -> LabelledImages:
    found = _train(root, options) if split == "train" else _test(root, options)
    size = int(options["size"])
    images = StreamedImages(DecodedImages(FileImages(found.files), (3, size, size), resize=True))
    labelled = LabelledImages(images, found.labels)
    if split == "train":
        return with_condition(labelled, root, options)
    return replace(labelled, groupings=_textures(root, options, found.files))


IMAGENET9 = DatasetFamily(
    name=NAME,
    summary="photographs of nine kinds of animals, whose textures are biased, from 42 classes of ImageNet",
    describe=_describe,
    check=_check,
    read=_read,
    options={
        "test": DatasetOption(
            "the test images: ImageNet's own, or ImageNet-A", str, "val", choices=("val", A_FOLDER)
        ),
        "path": DatasetOption("ImageNet's folder: absolute, or under the data root", str, "imagenet"),
        "textures": DatasetOption(
            "ReBias's file of the test images' clusters of textures, for the unbiased accuracy",
            str,
            NO_TEXTURES,
        ),
        "size": DatasetOption("shorter side in pixels, then the centre is cut out", int, 256, low=1),
        **CONDITION_OPTIONS,
    },
)
