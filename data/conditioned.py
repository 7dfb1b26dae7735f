"""A continuous condition for the images of a dataset, from a file that the name of the dataset gives.

`cifar10:condition=clip.npy` is CIFAR-10 with the rows of that file as the condition of the training images:
features of CLIP for a kernel-conditioned method, features of a bias-capturing network for FairKL. The test
images have no condition, because the final scores do not use one.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from contrasweep.data.condition_files import condition_shape, read_condition
from contrasweep.data.images import LabelledImages
from contrasweep.data.root import ROOT_VARIABLE, DatasetDamaged, DatasetMissing
from contrasweep.data.spec import DatasetOption, DatasetSpec, Options

NO_CONDITION = "none"

CONDITION_OPTIONS: Mapping[str, DatasetOption] = {
    "condition": DatasetOption(
        "file with a row of numbers for each training image (.npy, .safetensors, .parquet), as condition",
        str,
        NO_CONDITION,
    )
}
"""The option of every family that can have a condition from a file."""


def conditioned_spec(spec: DatasetSpec, root: Path, options: Options, images: int) -> DatasetSpec:
    """Return the facts of a dataset, with those of the condition if its options name one.

    Args:
        spec: the facts without the condition.
        root: the data root.
        options: contain the values of `CONDITION_OPTIONS`.
        images: the number of training images before any is left out.

    Raises:
        DatasetMissing: there is no such file.
        DatasetDamaged: the file does not have the format of its ending, or not one row for each image.
    """
    file = _file(root, options)
    if file is None:
        return spec
    try:
        rows, width = condition_shape(file)
    except ValueError as error:
        raise DatasetDamaged(f"condition of dataset {spec.name!r}: {error}") from None
    if rows != images:
        raise DatasetDamaged(
            f"dataset {spec.name!r}: {file} holds a condition for {rows:,} images, but there are {images:,} "
            "training images; it needs a row for each, in the dataset's order"
        )
    return replace(spec, condition_dim=width, condition_name=f"the rows of {file.name}")


def training_condition(root: Path, options: Options, images: int | None) -> Tensor | None:
    """Return the condition that the options name, float32 ``(images, D)``; None if they name none.

    Args:
        root: the data root.
        options: contain the values of `CONDITION_OPTIONS`.
        images: the number of training images before any is left out; None if it was checked before.

    Raises:
        DatasetMissing: there is no such file.
        DatasetDamaged: the file does not have the format of its ending, has another number of rows, or holds
            a value that is not finite.
    """
    file = _file(root, options)
    if file is None:
        return None
    try:
        return read_condition(file, condition_shape(file)[0] if images is None else images)
    except ValueError as error:
        raise DatasetDamaged(str(error)) from None


def with_condition(
    images: LabelledImages, root: Path, options: Options, rows: Tensor | None = None
) -> LabelledImages:
    """Return training images with the condition that the options name; unchanged if they name none.

    Args:
        images: the training images, or only those of ``rows``.
        root: the data root.
        options: contain the values of `CONDITION_OPTIONS`.
        rows: int64, the rows of the file for these images, if some images were left out.

    Raises:
        DatasetMissing, DatasetDamaged: see `training_condition`.
    """
    condition = training_condition(root, options, len(images) if rows is None else None)
    if condition is None:
        return images
    return replace(images, condition=condition if rows is None else condition[rows])


def _file(root: Path, options: Options) -> Path | None:
    given = str(options["condition"])
    if given == NO_CONDITION:
        return None
    file = root / Path(given).expanduser()
    if not file.is_file():
        raise DatasetMissing(
            f"condition={given}: {file} is not there, or no file. It is absolute, or under the data root "
            f"(--data-root DIR or {ROOT_VARIABLE}), and holds a row of numbers for each training image."
        )
    return file
