"""The classes of ImageNet's validation images in one folder, from any of the published files.

- `imagenet_2012_validation_synset_labels.txt`: a class (`n01440764`) in each line, in the order of the
images.
- `LOC_val_solution.csv` (Kaggle): `ImageId,PredictionString`, where the latter begins with the class.
- `ILSVRC2012_devkit_t12/data/`: `ILSVRC2012_validation_ground_truth.txt` with a number in each line, and
`meta.mat`
  with the class of each number.
"""

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from contrasweep.data.root import DatasetDamaged

_DEVKIT = "ILSVRC2012_devkit_t12/data"
_IMAGE = "ILSVRC2012_val_{:08d}"


def validation_classes(folder: Path, images: int) -> dict[str, str] | None:
    """Return the class of each validation image by its name without ending; None if there is no such file.

    Args:
        folder: holds one of the files above.
        images: the number of images that there must be.

    Raises:
        DatasetDamaged: the file does not have the published form.
    """
    for name, read in _READERS.items():
        file = folder / name
        if not file.is_file():
            continue
        try:
            classes = read(file)
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise DatasetDamaged(f"{file} is not as published ({error})") from error
        if len(classes) != images:
            raise DatasetDamaged(f"{file} has the classes of {len(classes):,} images, expected {images:,}")
        return classes
    return None


def _synset_labels(file: Path) -> dict[str, str]:
    return _in_order(file.read_text(encoding="utf-8").split())


def _solution(file: Path) -> dict[str, str]:
    with file.open(encoding="utf-8", newline="") as lines:
        return {row["ImageId"]: row["PredictionString"].split()[0] for row in csv.DictReader(lines)}


def _ground_truth(file: Path) -> dict[str, str]:
    from scipy.io import loadmat

    synsets = np.atleast_1d(loadmat(str(file.parent / "meta.mat"), squeeze_me=True)["synsets"])
    # The file also lists inner nodes of the hierarchy, after the classes.
    named = {int(one["ILSVRC2012_ID"]): str(one["WNID"]) for one in synsets}
    return _in_order([named[int(number)] for number in file.read_text(encoding="utf-8").split()])


def _in_order(classes: list[str]) -> dict[str, str]:
    return {_IMAGE.format(number): name for number, name in enumerate(classes, start=1)}


_READERS: Mapping[str, Callable[[Path], dict[str, str]]] = MappingProxyType(
    {
        "imagenet_2012_validation_synset_labels.txt": _synset_labels,
        "LOC_val_solution.csv": _solution,
        f"{_DEVKIT}/ILSVRC2012_validation_ground_truth.txt": _ground_truth,
    }
)

PUBLISHED_FILES = tuple(_READERS)
"""The names of these files under the folder of the dataset."""
