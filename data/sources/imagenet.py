"""ImageNet (ILSVRC 2012), all 1,000 classes or 100 of them, with the levels of WordNet's hierarchy.

Layout: `imagenet/train/nXXXXXXXX/*.JPEG` (the 1,000 archives of the training archive, each unpacked into a
folder of its name), and `imagenet/val/`, either with the same folders or with all `ILSVRC2012_val_*.JPEG` and
one of the files of `VALIDATION_FILES` in `imagenet/`. Classes are numbered in the order of
their names. The archives were not available; file names, counts and formats were checked against torchvision
and other programs that read them.

With `condition=FILE`, the file gives the condition of each training image (such as CLIP's features), in the
order of the sorted paths. With `hierarchy=FILE,level=L`, the condition is the ancestor of the class at level
L (the root is 1), with one column for each ancestor. The file has a `PARENT CHILD` pair in each line, like
`wordnet.is_a.txt`; see `data.hierarchy`.

Sources: Russakovsky et al., "ImageNet Large Scale Visual Recognition Challenge" (IJCV 2015); Tsai et al.
(ICLR 2022), Appendices B and E.4.
"""

import csv
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from contrasweep.data.condition_files import (
    CONDITION_OPTIONS,
    NO_CONDITION,
    condition_facts,
    training_condition,
)
from contrasweep.data.fingerprint import fingerprint_of_file
from contrasweep.data.hierarchy import SeveralParents, hierarchy_clusters, read_hierarchy
from contrasweep.data.listing import names_below
from contrasweep.data.matlab import matlab_variable
from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.root import Archive, DatasetDamaged, DatasetMissing, file_of_option, path_below
from contrasweep.data.sources.imagenet_classes import CL_INFONCE, CMC
from contrasweep.data.sources.listed_images import ListedImages, list_classes, listed_family
from contrasweep.data.spec import DatasetFamily, Split

ALL_CLASSES, ALL_TRAIN, ALL_TEST = 1_000, 1_281_167, 50_000
TEST_OF_A_CLASS = 50

LISTS = {"cl-infonce": CL_INFONCE, "cmc": CMC}
TRAIN_SIZES = {"cl-infonce": 128_783, "cmc": 126_689}
"""Training images of each list: printed by Cl-InfoNCE for the first, counted in copies of the second."""

_HIERARCHY_OPTIONS = {
    "hierarchy": DatasetOption(
        "file of PARENT CHILD lines: absolute, or under the data root", str, "none", of_condition=True
    ),
    "level": DatasetOption(
        "level of the ancestors that are the condition; the root is 1", int, 12, low=1, of_condition=True
    ),
    "parents": DatasetOption(
        "what to do at a node with several parents: refuse, or take the one listed first",
        str,
        "error",
        choices=("error", "first"),
        of_condition=True,
    ),
}

Classes = tuple[str, ...]


def _synset_labels(file: Path) -> dict[str, str]:
    return _in_order(file.read_text(encoding="utf-8").split())


def _solution(file: Path) -> dict[str, str]:
    with file.open(encoding="utf-8", newline="") as lines:
        return {row["ImageId"]: row["PredictionString"].split()[0] for row in csv.DictReader(lines)}


def _ground_truth(file: Path) -> dict[str, str]:
    synsets = np.atleast_1d(matlab_variable(file.parent / "meta.mat", "synsets", squeeze=True))
    # The file also lists inner nodes of the hierarchy, after the classes.
    named = {int(one["ILSVRC2012_ID"]): str(one["WNID"]) for one in synsets}
    return _in_order([named[int(number)] for number in file.read_text(encoding="utf-8").split()])


def _in_order(classes: list[str]) -> dict[str, str]:
    return {f"ILSVRC2012_val_{number:08d}": name for number, name in enumerate(classes, start=1)}


VALIDATION_FILES: Mapping[str, Callable[[Path], dict[str, str]]] = {
    "imagenet_2012_validation_synset_labels.txt": _synset_labels,
    "LOC_val_solution.csv": _solution,
    "ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt": _ground_truth,
}
"""The published files with the class of each validation image by its name, and their readers: a class in each
line; Kaggle's table; a number in each line, with the class of each number in `meta.mat` beside it."""


def _archive(name: str) -> Archive:
    return Archive(
        name,
        "https://www.image-net.org/download.php (ILSVRC2012, after registration)",
        folder="imagenet",
        holds=f"train/CLASS/*.JPEG and val/, by class or with one of {', '.join(VALIDATION_FILES)}",
    )


def _all_classes(root: Path, options: Options) -> Classes:
    return _folders(root / "imagenet/train")


def _own_list(root: Path, options: Options) -> Path | None:
    """Return the user's file with a list of classes; None for all classes and for a published list."""
    chosen = options.get("classes")
    return None if chosen is None or chosen in LISTS else path_below(root, str(chosen))


def _hundred_classes(root: Path, options: Options) -> Classes:
    chosen, file = str(options["classes"]), _own_list(root, options)
    if file is None:
        return LISTS[chosen]
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


def _folders(place: Path) -> Classes:
    if not place.is_dir():
        return ()
    return tuple(sorted(entry.name for entry in place.iterdir() if re.fullmatch(r"n\d{8}", entry.name)))


def _place(root: Path, split: Split) -> Path:
    return root / "imagenet" / ("train" if split == "train" else "val")


def _listed(archive: Archive, root: Path, split: Split, classes: Classes) -> ListedImages:
    """List a split in the order of the classes and then of the names.

    Raises:
        DatasetMissing: the validation images lie in one folder, and no file gives their classes.
    """
    place = _place(root, split)
    if split == "train" or _folders(place):
        return list_classes(place, classes, (".jpeg",))
    of_image = _validation_classes(archive, root)
    number = {name: label for label, name in enumerate(classes)}
    flat = [(of_image.get(Path(file).stem), file) for file in names_below(place, (".jpeg",))]
    found = sorted((number[name], file) for name, file in flat if name in number)
    labels = torch.tensor([label for label, _ in found], dtype=torch.int64)
    return ListedImages([place / file for _, file in found], labels)


def _validation_classes(archive: Archive, root: Path) -> dict[str, str]:
    """Return the class of each validation image by its name without ending.

    Raises:
        DatasetMissing: there is none of `VALIDATION_FILES`.
        DatasetDamaged: the file does not have the published form.
    """
    folder = root / "imagenet"
    there = [(folder / name, read) for name, read in VALIDATION_FILES.items() if (folder / name).is_file()]
    if not there:
        raise archive.incomplete(
            f"{_place(root, 'test')} has no folder for each class, and none of the files with the classes of "
            "the images is beside it"
        )
    file, read = there[0]
    try:
        classes = read(file)
    except DatasetDamaged:
        raise
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise DatasetDamaged(f"{file} is not as published ({error})") from error
    if len(classes) != ALL_TEST:
        raise DatasetDamaged(f"{file} has the classes of {len(classes):,} images, expected {ALL_TEST:,}")
    return classes


def _check_split(archive: Archive, root: Path, split: Split, classes: Classes, expected: int) -> None:
    found, place = _listed(archive, root, split, classes), _place(root, split)
    without = sorted(set(range(len(classes))) - set(found.labels.tolist()))
    if without:
        raise archive.incomplete(
            f"{place} has no image of {len(without):,} of {len(classes):,} classes, "
            f"the first is {classes[without[0]]}"
        )
    if len(found) != expected:
        raise archive.incomplete(f"{place} holds {len(found):,} images of its classes, expected {expected:,}")


def _hierarchy_file(root: Path, options: Options) -> Path:
    holds = "and holds a PARENT CHILD pair of WordNet's numbers a line, as ImageNet's wordnet.is_a.txt"
    return file_of_option(root, "hierarchy", str(options["hierarchy"]), holds)


def _ancestors(root: Path, options: Options, classes: Classes) -> Tensor:
    """Return the ancestor of each class at the options' level, one-hot float32 ``(classes, ancestors)``."""
    hierarchy = read_hierarchy(_hierarchy_file(root, options))
    parents: SeveralParents = "first" if options["parents"] == "first" else "error"
    everyone = torch.arange(len(classes))
    clusters = hierarchy_clusters(everyone, classes, hierarchy, int(options["level"]), parents)
    return functional.one_hot(clusters).float()


@dataclass(frozen=True)
class _Classes:
    """ImageNet, or some of its classes.

    Attributes:
        archive: has the name of the dataset.
        of: gives the classes.
        sizes: gives the numbers of classes, of training and of test images.
    """

    archive: Archive
    of: Callable[[Path, Options], Classes]
    sizes: Callable[[Path, Options], tuple[int, int, int]]

    def family(self, summary: str, own_options: Mapping[str, DatasetOption]) -> DatasetFamily:
        """Return the family of datasets; ``own_options`` are those that only it has."""
        options = {**own_options, **_HIERARCHY_OPTIONS, **CONDITION_OPTIONS}
        return listed_family(self.archive, summary, 224, self._facts, self._check, self._read, options)

    def _check(self, root: Path, options: Options) -> None:
        self.archive.check_folder(root, "train")
        self.archive.check_folder(root, "val")
        classes = self.of(root, options)
        count, train, test = self.sizes(root, options)
        if len(classes) != count:
            raise self.archive.incomplete(
                f"{_place(root, 'train')} has folders of {len(classes):,} classes, expected {count:,}"
            )
        _check_split(self.archive, root, "train", classes, train)
        _check_split(self.archive, root, "test", classes, test)
        self._facts(root, options)

    def _facts(self, root: Path, options: Options) -> Mapping[str, Any]:
        name, (classes, train, test) = self.archive.dataset, self.sizes(root, options)
        if options["condition"] != NO_CONDITION and options["hierarchy"] != "none":
            raise ValueError(
                f"dataset {name!r}: condition and hierarchy both set the condition; give only one of them"
            )
        chosen = _own_list(root, options)
        fingerprint = "" if chosen is None else fingerprint_of_file(chosen)
        condition = condition_facts(name, root, options, train, fingerprint)
        if options["hierarchy"] != "none":
            ancestors = _ancestors(root, options, self.of(root, options)).shape[1]
            named = f"ancestor at level {options['level']}, one column each"
            fingerprint += fingerprint_of_file(_hierarchy_file(root, options))
            condition = {"condition_dim": ancestors, "condition_name": named, "fingerprint": fingerprint}
        sizes = {"classes": classes, "train_size": train, "test_size": test}
        licence = "non-commercial research and education (image-net.org's terms)"
        return {**sizes, **condition, "licence": licence}

    def _read(self, root: Path, split: Split, options: Options) -> ListedImages:
        classes = self.of(root, options)
        found = _listed(self.archive, root, split, classes)
        condition = training_condition(root, options, len(found)) if split == "train" else None
        if options["hierarchy"] != "none":
            condition = _ancestors(root, options, classes)[found.labels]
        return replace(found, condition=condition)


def _hundred_sizes(root: Path, options: Options) -> tuple[int, int, int]:
    classes, chosen = _hundred_classes(root, options), str(options["classes"])
    train = TRAIN_SIZES.get(chosen) or len(_listed(_archive("imagenet100"), root, "train", classes))
    return len(classes), train, TEST_OF_A_CLASS * len(classes)


IMAGENET1K = _Classes(
    _archive("imagenet1k"), _all_classes, lambda root, options: (ALL_CLASSES, ALL_TRAIN, ALL_TEST)
).family("1.3 million photographs in 1,000 classes (ILSVRC 2012)", {})

IMAGENET100 = _Classes(_archive("imagenet100"), _hundred_classes, _hundred_sizes).family(
    "photographs of 100 of ImageNet's classes, by either published list or your own",
    {
        "classes": DatasetOption(
            "cl-infonce, cmc (as CACR), or a file with a class a line: absolute, or under the data root",
            str,
            "cl-infonce",
        )
    },
)
