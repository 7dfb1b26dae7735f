"""A continuous condition beside the images of a dataset, from a file that the dataset's name points at.

`cifar10:condition=clip.npy` is CIFAR-10 whose training images have the rows of that file as their condition:
features of CLIP for a kernel-conditioned method, of a bias-capturing network for FairKL. The test images have
none: nothing that is learned from a condition is scored by it.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from torch import Tensor

from contrasweep.data.condition_files import condition_shape, read_condition
from contrasweep.data.images import LabelledImages
from contrasweep.data.root import ROOT_VARIABLE, DatasetDamaged, DatasetMissing
from contrasweep.data.spec import DatasetOption, DatasetSpec, Options

NO_CONDITION = "none"

CONDITION_OPTIONS: Mapping[str, DatasetOption] = MappingProxyType(
    {
        "condition": DatasetOption(
            "file with a row of numbers for each training image (.npy, .safetensors, .parquet), as condition",
            str,
            NO_CONDITION,
        )
    }
)
"""The option of every family whose images can be given a condition."""


def conditioned_spec(spec: DatasetSpec, root: Path, options: Options, images: int) -> DatasetSpec:
    """Return the facts of a dataset with the condition that its options name; itself where they name none.

    Args:
        spec: the facts without it.
        root: the data root.
        options: with the values of `CONDITION_OPTIONS`.
        images: how many training images there are, before any is left out.

    Raises:
        DatasetMissing: the file is not there.
        DatasetDamaged: it is not what its ending says, or does not hold a row for each of the ``images``.
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


def training_condition(root: Path, options: Options, images: int) -> Tensor | None:
    """Return the condition that the options name, float32 ``(images, D)``; None where they name none.

    Args:
        root: the data root.
        options: with the values of `CONDITION_OPTIONS`.
        images: how many training images there are, before any is left out.

    Raises:
        DatasetMissing: the file is not there.
        DatasetDamaged: it is not what its ending says, has another number of rows, or a value is not finite.
    """
    file = _file(root, options)
    if file is None:
        return None
    try:
        return read_condition(file, images)
    except ValueError as error:
        raise DatasetDamaged(str(error)) from None


def with_condition(
    images: LabelledImages, root: Path, options: Options, rows: Tensor | None = None
) -> LabelledImages:
    """Return training images with the condition that the options name; themselves where they name none.

    Args:
        images: the training images, or those of them that ``rows`` names.
        root: the data root.
        options: with the values of `CONDITION_OPTIONS`.
        rows: int64, which of the file's rows the images have, where some images were left out.

    Raises:
        DatasetMissing: the file is not there.
        DatasetDamaged: it is not what its ending says, has another number of rows, or a value is not finite.
    """
    file = _file(root, options)
    if file is None:
        return images
    try:
        whole = condition_shape(file)[0] if rows is not None else len(images)
    except ValueError as error:
        raise DatasetDamaged(str(error)) from None
    condition = training_condition(root, options, whole)
    assert condition is not None, "the options name a file"
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
