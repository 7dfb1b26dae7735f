"""The images that features are computed of: of a folder, of a split of a dataset, or held out of a run."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from torch import Tensor

from contrasweep.data import (
    UNLABELLED,
    DatasetSpec,
    Images,
    LabelledImages,
    StreamedImages,
    check_available,
    dataset_spec,
    load_training,
)
from contrasweep.data.encoded import DecodedImages, FileImages
from contrasweep.data.listing import names_below
from contrasweep.data.own_folders import EXTENSIONS
from contrasweep.names import in_utf8
from contrasweep.tuning.errors import InputError, told_to_user
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.objectives.prepared import cut_of, refuse_other_data, spec_for
from contrasweep.tuning.transfer.tasks import of_several_views, test_images


@dataclass(frozen=True)
class ImageSet:
    """Images with their names, and with labels where they are known.

    Attributes:
        images: uint8 `(N, C, H, W)`, decoded as they are asked for where they are stored encoded.
        names: N file names, or numbers in the dataset; all texts can be written in UTF-8.
        labels: N labels; None for an image without one.
        classes: the names of the labels.
        source: what they are, in words.
        resized: whether the shorter side of each image was resized and the centre square cut out.
        bias: N bias labels, which should not help to predict the class; None where there are none.
        background: N background colours as `#RRGGBB`; None where there are none.
    """

    images: Images
    names: Sequence[str]
    labels: Sequence[int | None]
    classes: Sequence[str]
    source: str
    resized: bool = False
    bias: Sequence[int] | None = None
    background: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.names)

    def subset(self, rows: Tensor) -> "ImageSet":
        """Return the images of `rows` (int64 `(M,)`), in their order; streamed ones stay on disk."""
        own, images = rows.tolist(), self.images
        return replace(
            self,
            images=images.subset(rows) if isinstance(images, StreamedImages) else images[rows],
            names=[self.names[row] for row in own],
            labels=[self.labels[row] for row in own],
            bias=None if self.bias is None else [self.bias[row] for row in own],
            background=None if self.background is None else [self.background[row] for row in own],
        )


def folder_images(folder: str, channels: int, size: int, *, skip_corrupt: bool = False) -> ImageSet:
    """Return all image files below a folder, in the order of their paths, resized as datasets of folders are.

    Their shorter side is resized to `size` pixels, and the centre cut out. The folder in which a file lies,
    directly below `folder`, is its class; a file that lies in no such folder has none. With `skip_corrupt`,
    every image is decoded once, and those that cannot be are left out, with a warning.

    Raises:
        InputError: there is no image below the folder.
        DatasetDamaged: with `skip_corrupt`, none of them can be decoded.
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
    found = ImageSet(
        StreamedImages(files),
        [in_utf8(name) for name in names],
        labels,
        [in_utf8(name) for name in classes],
        in_utf8(os.path.abspath(folder)),
        resized=True,
    )
    return found.subset(files.sound_rows()) if skip_corrupt else found


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
    if not isinstance(spec, DatasetSpec):
        raise of_several_views(dataset)
    found = loaded if isinstance(loaded, LabelledImages) else loaded.train
    return _image_set(found, spec, split)


def validation_images(experiment: Experiment, data_root: Path | None) -> ImageSet:
    """Return the images that an experiment holds out of its training images to score a search on.

    Raises:
        InputError: the experiment holds none out, or is about images of another revision or several views.
        DatasetMissing: the files of the dataset are not in place.
    """
    with told_to_user():
        check_available(experiment.dataset, data_root)
        spec = spec_for(experiment, data_root)
        refuse_other_data(experiment, spec)
        if not isinstance(spec, DatasetSpec):
            raise of_several_views(experiment.dataset)
        cut = cut_of(experiment.validation)
        found = load_training(experiment.dataset, data_root, **cut, placement="stream").validation
    if found is None:
        raise InputError(f"the run holds no image of {experiment.dataset} out: validation.fraction is 0")
    return _image_set(found, spec, "validation")


def _image_set(found: LabelledImages, spec: DatasetSpec, split: str) -> ImageSet:
    colours = (
        found.condition.round().long().tolist() if found.condition is not None and spec.has_colour else None
    )
    return ImageSet(
        found.images,
        _names(found.images, split),
        [None if label == UNLABELLED else label for label in found.labels.tolist()],
        [in_utf8(name) for name in spec.told_classes],
        in_utf8(f"{spec.name}, {split} split"),
        bias=None if found.bias is None else found.bias.tolist(),
        background=None if colours is None else ["#{:02X}{:02X}{:02X}".format(*one) for one in colours],
    )


def _names(images: Images, split: str) -> Sequence[str]:
    if isinstance(images, StreamedImages) and isinstance(images.source, DecodedImages):
        return [in_utf8(images.source.name(row)) for row in images.rows.tolist()]
    return [f"{split}/{row}" for row in range(len(images))]
