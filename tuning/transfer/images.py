"""The images that features are computed of: those of a folder, or of one split of a dataset."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from contrasweep.data import (
    UNLABELLED,
    Images,
    LabelledImages,
    StreamedImages,
    check_available,
    dataset_spec,
    load_training,
)
from contrasweep.data.encoded import DecodedImages, FileImages
from contrasweep.data.own_folders import EXTENSIONS
from contrasweep.data.sources.listed_images import names_below
from contrasweep.tuning.errors import InputError, told_to_user
from contrasweep.tuning.transfer.tasks import test_images


@dataclass(frozen=True)
class ImageSet:
    """Images with their names, and with labels where they are known.

    Attributes:
        images: uint8 `(N, C, H, W)`, decoded as they are asked for where they are stored encoded.
        names: N file names, or numbers in the dataset.
        labels: N labels; None for an image without one.
        classes: the names of the labels.
        source: what they are, in words.
        resized: whether the shorter side of each image was resized and the centre square cut out.
    """

    images: Images
    names: Sequence[str]
    labels: Sequence[int | None]
    classes: Sequence[str]
    source: str
    resized: bool = False

    def __len__(self) -> int:
        return len(self.names)


def folder_images(folder: str, channels: int, size: int) -> ImageSet:
    """Return all image files below a folder, in the order of their paths, resized as datasets of folders are.

    Their shorter side is resized to `size` pixels, and the centre cut out. The folder in which a file lies,
    directly below `folder`, is its class; a file that lies in no such folder has none.

    Raises:
        InputError: there is no image below the folder.
    """
    place = Path(folder)
    names = names_below(place, EXTENSIONS)
    if not names:
        raise InputError(f"{folder} holds no image: files that end in {', '.join(EXTENSIONS)} count")
    own = [name.partition("/")[0] if "/" in name else None for name in names]
    classes = sorted({name for name in own if name is not None})
    number = {name: label for label, name in enumerate(classes)}
    files = DecodedImages(FileImages([place / name for name in names]), (channels, size, size), resize=True)
    labels = [None if name is None else number[name] for name in own]
    return ImageSet(StreamedImages(files), names, labels, classes, os.path.abspath(folder), resized=True)


def dataset_images(dataset: str, split: str, data_root: Path | None) -> ImageSet:
    """Return the images of one split of a dataset; where they are stored encoded, they stay on disk.

    Raises:
        InputError: the dataset has no single images.
        DatasetMissing: its files are not in place.
    """
    with told_to_user():
        check_available(dataset, data_root)
        spec = dataset_spec(dataset, data_root)
    load = partial(load_training, placement="stream") if split == "train" else test_images
    with told_to_user():
        loaded = load(dataset, data_root)
    found = loaded if isinstance(loaded, LabelledImages) else loaded.train
    labels = [None if label == UNLABELLED else label for label in found.labels.tolist()]
    classes = spec.class_names or tuple(map(str, range(spec.classes)))
    return ImageSet(found.images, _names(found.images, split), labels, classes, f"{dataset}, {split} split")


def _names(images: Images, split: str) -> Sequence[str]:
    if isinstance(images, StreamedImages) and isinstance(images.source, DecodedImages):
        return [images.source.name(row) for row in images.rows.tolist()]
    return [f"{split}/{row}" for row in range(len(images))]
