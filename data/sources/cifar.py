"""CIFAR-10 and CIFAR-100 from the authors' pickled batches, in the layout of torchvision."""

import io
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contrasweep.data.condition_files import CONDITION_OPTIONS, condition_facts, training_condition
from contrasweep.data.encoded import check_labels
from contrasweep.data.facts import DatasetSpec
from contrasweep.data.images import LabelledImages
from contrasweep.data.imbalance import IMBALANCE_OPTIONS, imbalanced, is_cut, kept_counts, rows_left
from contrasweep.data.options import Options
from contrasweep.data.root import DatasetDamaged, check_files
from contrasweep.data.spec import DatasetFamily, Split, family_of

_SHAPE = (3, 32, 32)


@dataclass(frozen=True)
class CifarLayout:
    """The files of one of the two sets.

    Attributes:
        name: the name of the dataset.
        folder: the folder under the data root.
        train: the files of the training split, with their sizes in bytes (None: unknown).
        test: the file of the test split, with its size.
        meta: the file with the names of the classes, with its size.
        label_key: the entry of a batch with the labels.
        names_key: the entry of `meta` with the names of the classes.
        classes: the number of labels.
        source: where to get the files.
    """

    name: str
    folder: str
    train: Mapping[str, int | None]
    test: Mapping[str, int | None]
    meta: Mapping[str, int | None]
    label_key: str
    names_key: str
    classes: int
    source: str


CIFAR10_LAYOUT = CifarLayout(
    name="cifar10",
    folder="cifar-10-batches-py",
    train={
        "data_batch_1": 31_035_704,
        "data_batch_2": 31_035_320,
        "data_batch_3": 31_035_999,
        "data_batch_4": 31_035_696,
        "data_batch_5": 31_035_623,
    },
    test={"test_batch": 31_035_526},
    meta={"batches.meta": 158},
    label_key="labels",
    names_key="label_names",
    classes=10,
    source="https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz (unpack it)",
)

CIFAR100_LAYOUT = CifarLayout(
    name="cifar100",
    folder="cifar-100-python",
    train={"train": 155_249_918},
    test={"test": None},
    meta={"meta": 1_473},
    label_key="fine_labels",
    names_key="fine_label_names",
    classes=100,
    source="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz (unpack it)",
)


def read_cifar(root: Path, split: Split, layout: CifarLayout) -> LabelledImages:
    """Read one split, ``(N, 3, 32, 32)``, from the batches in ``root/layout.folder``.

    Raises:
        DatasetDamaged: a batch is not a pickle of arrays, or has wrong images or labels.
    """
    images, labels = [], []
    for file in layout.train if split == "train" else layout.test:
        path = root / layout.folder / file
        pixels, classes = _read_batch(path, layout.label_key)
        check_labels(classes, layout.classes, str(path))
        images.append(torch.from_numpy(pixels).view(-1, *_SHAPE))
        labels.append(classes)
    return LabelledImages(torch.cat(images), torch.cat(labels))


def _read_batch(path: Path, label_key: str) -> tuple[Any, torch.Tensor]:
    batch = _unpickle(path)
    try:
        pixels, labels = batch["data"], torch.tensor(batch[label_key], dtype=torch.int64)
    except (KeyError, TypeError, ValueError) as error:
        raise DatasetDamaged(f"{path} is not a batch of CIFAR: {type(error).__name__}: {error}") from error
    shape = getattr(pixels, "shape", None)
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or shape != (len(labels), 3 * 32 * 32):
        raise DatasetDamaged(
            f"{path} must hold uint8 ({len(labels)}, {3 * 32 * 32}) for its {len(labels)} labels, has {shape}"
        )
    return pixels, labels


def _class_names(root: Path, layout: CifarLayout) -> tuple[str, ...]:
    """Return the names of the classes; empty if their file is missing."""
    (file,) = layout.meta
    path = root / layout.folder / file
    return tuple(_unpickle(path)[layout.names_key]) if path.is_file() else ()


def _unpickle(path: Path) -> Any:
    try:
        return _ArraysOnly(io.BytesIO(path.read_bytes()), encoding="latin1").load()
    except (pickle.UnpicklingError, EOFError, TypeError, ValueError, IndexError) as error:
        raise DatasetDamaged(f"{path} is not a file of CIFAR: {type(error).__name__}: {error}") from error


class _ArraysOnly(pickle.Unpickler):
    """Unpickles only arrays and plain values, because a foreign pickle could run any code."""

    def find_class(self, module: str, name: str) -> Any:
        allowed = {
            # This function has moved between versions of numpy; here is the installed one.
            "_reconstruct": np.zeros(0).__reduce__()[0],
            "ndarray": np.ndarray,
            "dtype": np.dtype,
        }
        if module.partition(".")[0] == "numpy" and name in allowed:
            return allowed[name]
        if (module, name) == ("_codecs", "encode"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def cifar_family(layout: CifarLayout) -> DatasetFamily:
    """Return the dataset of a layout, whole or cut to unequal classes."""
    files = {**layout.train, **layout.test, **layout.meta}
    counts = [50_000 // layout.classes] * layout.classes
    # Ten levels of imbalance, as in the paper.
    group_size = layout.classes // 10

    def vary(root: Path, options: Options) -> Mapping[str, Any]:
        return {
            "train_size": sum(kept_counts(counts, options, group_size)),
            "cut": is_cut(options),
            "class_names": _class_names(root, layout),
            **condition_facts(layout.name, root, options, sum(counts)),
        }

    def check(root: Path, options: Options) -> None:
        check_files(layout.name, root, layout.folder, files, layout.source)
        vary(root, options)

    def read(root: Path, split: Split, options: Options) -> LabelledImages:
        if split == "test":
            return read_cifar(root, split, layout)
        return imbalanced(whole(root, options), layout.name, counts, options, group_size)

    def whole(root: Path, options: Options) -> LabelledImages:
        images = read_cifar(root, "train", layout)
        # Before images are left out, because the file has a row for each image of the whole split.
        return replace(images, condition=training_condition(root, options, len(images)))

    def uncut(root: Path, options: Options) -> tuple[LabelledImages, Tensor]:
        images = whole(root, options)
        return images, rows_left(images, layout.name, counts, options, group_size)

    facts = DatasetSpec(
        name=layout.name,
        summary=f"60,000 photographs of 32 x 32 pixels in {layout.classes} classes",
        classes=layout.classes,
        channels=3,
        image_size=32,
        view_size=32,
        train_size=sum(counts),
        test_size=10_000,
        licence="none stated by the authors (Krizhevsky 2009); research use is customary",
        source=layout.source,
        folder=layout.folder,
    )
    options = {**IMBALANCE_OPTIONS, **CONDITION_OPTIONS}
    return family_of(facts, check, read, options, vary, lambda: _checksums(layout), uncut)


def _checksums(layout: CifarLayout) -> dict[str, str]:
    """Return the MD5 of each file under the data root, as torchvision publishes them."""
    from torchvision import datasets

    known = getattr(datasets, layout.name.upper())
    listed = (*known.train_list, *known.test_list, (known.meta["filename"], known.meta["md5"]))
    return {f"{layout.folder}/{file}": md5 for file, md5 in listed}


CIFAR10 = cifar_family(CIFAR10_LAYOUT)
CIFAR100 = cifar_family(CIFAR100_LAYOUT)
