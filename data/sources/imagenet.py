"""ImageNet (ILSVRC 2012), all 1,000 classes or 100 of them, with the levels of WordNet's hierarchy.

Layout: `imagenet/train/nXXXXXXXX/*.JPEG` (the 1,000 archives of the training archive, each unpacked into a
folder of its name), and `imagenet/val/`, either with the same folders or with all `ILSVRC2012_val_*.JPEG` and
one of the files of `data.sources.imagenet_validation` in `imagenet/`. Classes are numbered in the order of
their names. The archives were not available; file names, counts and formats were checked against torchvision
and other programs that read them.

With `condition=FILE`, the file gives the condition of each training image (such as CLIP's features), in the
order of the sorted paths. With `hierarchy=FILE,level=L`, the condition is the ancestor of the class at level
L (the root is 1), with one column for each ancestor. The file has a `PARENT CHILD` pair in each line, like
`wordnet.is_a.txt`; see `data.hierarchy`.

Sources: Russakovsky et al., "ImageNet Large Scale Visual Recognition Challenge" (IJCV 2015); Tsai et al.
(ICLR 2022), Appendices B and E.4.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from contrasweep.data.conditioned import (
    CONDITION_OPTIONS,
    NO_CONDITION,
    conditioned_spec,
    training_condition,
)
from contrasweep.data.hierarchy import SeveralParents, hierarchy_clusters, read_hierarchy
from contrasweep.data.images import LabelledImages
from contrasweep.data.root import ROOT_VARIABLE, DatasetDamaged, DatasetMissing
from contrasweep.data.sources.imagenet_classes import CL_INFONCE, CMC
from contrasweep.data.sources.imagenet_validation import PUBLISHED_FILES, validation_classes
from contrasweep.data.sources.listed_images import (
    ListedImages,
    check_folder,
    listed_options,
    open_listed,
    where_to_put,
)
from contrasweep.data.spec import (
    DatasetFamily,
    DatasetOption,
    DatasetSpec,
    Options,
    Split,
    spelled_name,
)

FOLDER = "imagenet"
SOURCE = "https://www.image-net.org/download.php (ILSVRC2012, after registration)"
HOW = where_to_put(
    SOURCE, FOLDER, f"train/CLASS/*.JPEG and val/, by class or with one of {', '.join(PUBLISHED_FILES)}"
)
LICENCE = "non-commercial research and education (image-net.org's terms)"

ALL_CLASSES, ALL_TRAIN, ALL_TEST = 1_000, 1_281_167, 50_000
TEST_OF_A_CLASS = 50

LISTS = {"cl-infonce": CL_INFONCE, "cmc": CMC}
TRAIN_SIZES = {"cl-infonce": 128_783, "cmc": 126_689}
"""Training images of each list: printed by Cl-InfoNCE for the first, counted in copies of the second."""

_HIERARCHY_OPTIONS = {
    "hierarchy": DatasetOption("file of PARENT CHILD lines: absolute, or under the data root", str, "none"),
    "level": DatasetOption("level of the ancestors that are the condition; the root is 1", int, 12, low=1),
    "parents": DatasetOption(
        "what to do at a node with several parents: refuse, or take the one listed first",
        str,
        "error",
        choices=("error", "first"),
    ),
}

Classes = tuple[str, ...]
ChosenClasses = Callable[[Path, Options], Classes]


def _all_classes(root: Path, options: Options) -> Classes:
    return _folders(root / FOLDER / "train")


def _hundred_classes(root: Path, options: Options) -> Classes:
    chosen = str(options["classes"])
    if chosen in LISTS:
        return LISTS[chosen]
    file = root / Path(chosen).expanduser()
    if not file.is_file():
        known = ", ".join(LISTS)
        raise DatasetMissing(
            f"classes of dataset 'imagenet100': {file} is not a file with a class per line, and {chosen!r} "
            f"is not one of the published lists ({known})"
        )
    words = file.read_text(encoding="utf-8").split()
    names = tuple(sorted({word for word in words if re.fullmatch(r"n\d{8}", word)}))
    if not names:
        raise DatasetDamaged(f"{file} names no class such as n01440764")
    return names


@lru_cache(maxsize=8)
def _listed(folder: Path, changed: int) -> tuple[str, ...]:
    """List the images of one folder; `changed`, its time of change, keys the cache."""
    return tuple(sorted(entry.name for entry in folder.iterdir() if entry.suffix.upper() == ".JPEG"))


def _images_in(folder: Path) -> tuple[str, ...]:
    return _listed(folder, folder.stat().st_mtime_ns) if folder.is_dir() else ()


def _folders(place: Path) -> Classes:
    if not place.is_dir():
        return ()
    return tuple(sorted(entry.name for entry in place.iterdir() if re.fullmatch(r"n\d{8}", entry.name)))


@dataclass(frozen=True)
class _Split:
    """The images of a split: paths under `place`, and the number of each image's class.

    Each access makes a path: 1.3 million paths in memory would take half a gigabyte.
    """

    place: Path
    names: tuple[str, ...]
    labels: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, row: int) -> Path:
        return self.place / self.names[row]


def _split(root: Path, split: Split, classes: Classes) -> _Split:
    """List a split in the order of the classes and then of the names.

    Raises:
        DatasetMissing: the validation images lie in one folder, and no file gives their classes.
    """
    place = root / FOLDER / ("train" if split == "train" else "val")
    number = {name: label for label, name in enumerate(classes)}
    if split == "train" or _folders(place):
        found = [
            (label, f"{name}/{file}") for name, label in number.items() for file in _images_in(place / name)
        ]
    else:
        of_image = _classes_of_validation(root)
        flat = ((of_image.get(Path(file).stem), file) for file in _images_in(place))
        found = sorted((number[name], file) for name, file in flat if name in number)
    return _Split(place, tuple(file for _, file in found), tuple(label for label, _ in found))


def _classes_of_validation(root: Path) -> dict[str, str]:
    of_image = validation_classes(root / FOLDER, ALL_TEST)
    if of_image is None:
        raise DatasetMissing(
            f"dataset 'imagenet' is incomplete: {root / FOLDER / 'val'} has no folder for each class, and "
            f"none of the files with the classes of the images is beside it. {HOW}"
        )
    return of_image


def _check_split(name: str, root: Path, split: Split, classes: Classes, expected: int | None) -> None:
    found = _split(root, split, classes)
    without = sorted(set(range(len(classes))) - set(found.labels))
    if without:
        raise DatasetMissing(
            f"dataset {name!r} is incomplete: {found.place} has no image of {len(without):,} of "
            f"{len(classes):,} classes, the first is {classes[without[0]]}. {HOW}"
        )
    if expected is not None and len(found) != expected:
        raise DatasetMissing(
            f"dataset {name!r} is incomplete: {found.place} holds {len(found):,} images of its classes, "
            f"expected {expected:,}. {HOW}"
        )


def _refuse_two_conditions(name: str, options: Options) -> None:
    if options["condition"] != NO_CONDITION and options["hierarchy"] != "none":
        raise ValueError(
            f"dataset {name!r}: condition and hierarchy both set the condition; give only one of them"
        )


def _ancestors(root: Path, options: Options, classes: Classes) -> Tensor:
    """Return the ancestor of each class at the options' level, one-hot float32 ``(classes, ancestors)``."""
    file = root / Path(str(options["hierarchy"])).expanduser()
    if not file.is_file():
        raise DatasetMissing(
            f"hierarchy={options['hierarchy']}: {file} is not there, or no file. It is absolute, or under "
            f"the data root (--data-root DIR or {ROOT_VARIABLE}), and holds a PARENT CHILD pair of WordNet's "
            "numbers a line, as ImageNet's wordnet.is_a.txt."
        )
    parents: SeveralParents = "first" if options["parents"] == "first" else "error"
    everyone = torch.arange(len(classes))
    clusters = hierarchy_clusters(everyone, classes, read_hierarchy(file), int(options["level"]), parents)
    return functional.one_hot(clusters).float()


@dataclass(frozen=True)
class _Classes:
    """ImageNet, or some of its classes.

    Attributes:
        name: the name of the dataset.
        summary: one line about it.
        of: gives the classes.
        sizes: gives the numbers of classes, of training and of test images.
        own_options: the options that only this dataset has.
    """

    name: str
    summary: str
    of: ChosenClasses
    sizes: Callable[[Path, Options], tuple[int, int, int]]
    own_options: Mapping[str, DatasetOption]

    def family(self) -> DatasetFamily:
        """Return the family of datasets."""
        return DatasetFamily(
            self.name, self.summary, self._describe, self._check, self._read, self._options()
        )

    def _options(self) -> dict[str, DatasetOption]:
        return {**listed_options(224), **self.own_options, **_HIERARCHY_OPTIONS, **CONDITION_OPTIONS}

    def _check(self, root: Path, options: Options) -> None:
        check_folder(self.name, root, f"{FOLDER}/train", HOW)
        check_folder(self.name, root, f"{FOLDER}/val", HOW)
        classes = self.of(root, options)
        count, train, test = self.sizes(root, options)
        if len(classes) != count:
            raise DatasetMissing(
                f"dataset {self.name!r} is incomplete: {root / FOLDER / 'train'} has folders of "
                f"{len(classes):,} classes, expected {count:,}. {HOW}"
            )
        _check_split(self.name, root, "train", classes, train)
        _check_split(self.name, root, "test", classes, test)
        self._describe(root, options)

    def _describe(self, root: Path, options: Options) -> DatasetSpec:
        count, train, test = self.sizes(root, options)
        size = int(options["size"])
        _refuse_two_conditions(self.name, options)
        condition: dict[str, Any] = {}
        if options["hierarchy"] != "none":
            ancestors = _ancestors(root, options, self.of(root, options))
            condition["condition_dim"] = ancestors.shape[1]
            condition["condition_name"] = f"ancestor at level {options['level']}, one column each"
        spec = DatasetSpec(
            name=spelled_name(self.name, self._options(), options),
            summary=self.summary,
            classes=count,
            channels=3,
            image_size=size,
            view_size=size,
            train_size=train,
            test_size=test,
            licence=LICENCE,
            source=SOURCE,
            folder=FOLDER,
            **condition,
        )
        return conditioned_spec(spec, root, options, train)

    def _read(self, root: Path, split: Split, options: Options) -> LabelledImages:
        classes = self.of(root, options)
        found = _split(root, split, classes)
        labels = torch.tensor(found.labels, dtype=torch.int64)
        condition = training_condition(root, options, len(found)) if split == "train" else None
        if options["hierarchy"] != "none":
            condition = _ancestors(root, options, classes)[labels]
        return open_listed(ListedImages(found, labels, condition), options)


def _hundred_sizes(root: Path, options: Options) -> tuple[int, int, int]:
    classes = _hundred_classes(root, options)
    chosen = str(options["classes"])
    train = TRAIN_SIZES[chosen] if chosen in TRAIN_SIZES else len(_split(root, "train", classes))
    return len(classes), train, TEST_OF_A_CLASS * len(classes)


IMAGENET1K = _Classes(
    "imagenet1k",
    "1.3 million photographs in 1,000 classes (ILSVRC 2012)",
    _all_classes,
    lambda root, options: (ALL_CLASSES, ALL_TRAIN, ALL_TEST),
    {},
).family()

IMAGENET100 = _Classes(
    "imagenet100",
    "photographs of 100 of ImageNet's classes, by either published list or your own",
    _hundred_classes,
    _hundred_sizes,
    {
        "classes": DatasetOption(
            "cl-infonce, cmc (as CACR), or a file with a class a line: absolute, or under the data root",
            str,
            "cl-infonce",
        )
    },
).family()
