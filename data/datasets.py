"""The datasets by name: their facts, and functions that load training data or test data.

Training data and test data come from different functions on purpose. Training and search call
`load_training`, which opens no test file, or `load_transductive`, which gives no label of an unlabelled
object. Only the final evaluation calls `load_test`.

`root` is everywhere the folder that holds the datasets, see `data_root`; `placement` says whether encoded
images are held in memory, see `default_placement`.
"""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast, get_args

import torch
from torch import Tensor

from contrasweep.data.checked_returns import checked_images, checked_objects
from contrasweep.data.facts import DatasetFacts
from contrasweep.data.images import UNLABELLED, LabelledImages
from contrasweep.data.options import Options
from contrasweep.data.own_folders import unknown_dataset
from contrasweep.data.root import data_root
from contrasweep.data.seeds import torch_generator
from contrasweep.data.sources import FAMILIES, TRANSDUCTIVE_FAMILIES
from contrasweep.data.spec import DatasetFamily
from contrasweep.data.splits import CUT, ValidationSplit, held_out_rows, with_subset
from contrasweep.data.streaming import Placement
from contrasweep.data.transductive import TransductiveData, TransductiveFamily, hold_out
from contrasweep.names import few, unknown
from contrasweep.plugins import Registry

log = logging.getLogger(__name__)

PLACEMENT_VARIABLE = "CONTRASWEEP_PLACEMENT"

Family = DatasetFamily | TransductiveFamily


def _completed(family: Family, *, of_plugin: bool = False) -> Family:
    if isinstance(family, DatasetFamily):
        return with_subset(checked_images(family, of_plugin=of_plugin))
    return checked_objects(family, of_plugin=of_plugin)


DATASETS: Mapping[str, Family] = Registry[Family](
    "dataset",
    lambda: [*map(_completed, FAMILIES), *map(_completed, TRANSDUCTIVE_FAMILIES)],
    (DatasetFamily, TransductiveFamily),
    accept=partial(_completed, of_plugin=True),
)
"""Our own families of datasets and those of plug-ins, by name; `dataset_spec` gives the facts of a member."""


@dataclass(frozen=True)
class TrainingData:
    """The training images, and the validation images cut from them (None if there are none)."""

    train: LabelledImages
    validation: LabelledImages | None


def parse_dataset(name: str) -> tuple[Family, Options]:
    """Return the family and the options in the name of a dataset.

    Raises:
        ValueError: see `dataset_spec`.
    """
    bare, _, given = name.partition(":")
    if bare not in DATASETS:
        raise ValueError(unknown_dataset(bare, DATASETS))
    return DATASETS[bare], DATASETS[bare].parse(given)


def dataset_spec(name: str, root: Path | None = None) -> DatasetFacts:
    """Return the facts of the dataset called ``name`` (`NAME` or `NAME:OPTION=VALUE,...`).

    Raises:
        ValueError: there is no such dataset or option (the message names the nearest), or an option's value
            is not allowed.
        DatasetMissing: the facts are in files that are missing.
    """
    family, options = parse_dataset(name)
    return family.describe(data_root(root), options)


def resized_to(name: str) -> int | None:
    """Return the pixels a side to which the name of a dataset has its images resized; None if they are not.

    Raises:
        ValueError: see `dataset_spec`.
    """
    return int(parse_dataset(name)[1].get("size", 0)) or None


def scored_dataset(name: str) -> str:
    """Return the name without the options that change the condition alone: the same images are scored.

    `cifar10:condition=clip.npy` is scored on the images of `cifar10`, so their final runs can be compared.
    Their validation splits differ, because those are drawn for the whole name.

    Raises:
        ValueError: see `dataset_spec`.
    """
    family, options = parse_dataset(name)
    return family.full_name(
        {key: one for key, one in options.items() if not family.options[key].of_condition}
    )


def normal_name(name: str) -> str:
    """Return the one spelling of a dataset's name: options in their order, none with its default.

    Raises:
        ValueError: see `dataset_spec`.
    """
    family, options = parse_dataset(name)
    return family.full_name(options)


def cut_other_test_images(name: str, other: str, root: Path | None = None) -> bool:
    """Whether the test images that one name cuts off may be training images of another name of the family.

    This is so if there is no test split and an option decides which images are cut off, as `labels` does.

    Raises:
        ValueError: see `dataset_spec`.
        DatasetMissing: see `dataset_spec`.
    """
    (family, options), (its_family, others) = parse_dataset(name), parse_dataset(other)
    if family is not its_family or CUT not in family.describe(data_root(root), options).summary:
        return False
    return any(value != others[key] for key, value in options.items() if family.options[key].cuts_test)


def known_datasets(root: Path | None = None) -> list[DatasetFacts]:
    """Return the facts of every dataset that needs no options."""
    return [dataset_spec(name, root) for name, family in DATASETS.items() if not family.needs_options]


def check_available(name: str, root: Path | None = None) -> None:
    """Check that the files of a dataset are in place, without reading them.

    Raises:
        ValueError: there is no such dataset.
        DatasetMissing: its folder or a file is absent or has the wrong size.
    """
    family, options = parse_dataset(name)
    family.check(data_root(root), options)


def parse_image_dataset(name: str) -> tuple[DatasetFamily, Options]:
    """Return the family and the options of a dataset of labelled images.

    Raises:
        ValueError: see `dataset_spec`; or the dataset is a transductive one.
    """
    family, options = parse_dataset(name)
    if isinstance(family, DatasetFamily):
        return family, options
    raise ValueError(f"dataset {family.name} is transductive: it has no splits of labelled images")


def load_training(
    name: str,
    root: Path | None = None,
    validation_fraction: float = 0.0,
    split_seed: int = 0,
    *,
    split: ValidationSplit = "class",
    placement: Placement | None = None,
    device: torch.device | str = "cpu",
) -> TrainingData:
    """Load the training images and cut a validation split from them; no test image is read.

    The split depends only on the dataset's name, on ``split`` (see `held_out_rows`) and on ``split_seed``.
    An image keeps its background colour on either side, except by `recoloured`, which gives the validation
    images another bias. Images without a label stay in training, unless
    no image has one.

    ``validation_fraction`` is the share of the labelled images (of all, if none has a label) cut off, at
    least 0 and below 1; 0 leaves ``validation`` None. The images are put on ``device``.

    Raises:
        ValueError: unknown dataset or placement, a fraction out of range, or a split that the dataset's
            images do not allow.
        DatasetMissing: the files are not in place, or damaged.
    """
    if not 0.0 <= validation_fraction < 1.0:
        raise ValueError(f"validation_fraction must be at least 0 and below 1, got {validation_fraction}")
    chosen = default_placement() if placement is None else placement
    family, options = parse_image_dataset(name)
    family.check(data_root(root), options)
    images = family.read(data_root(root), "train", options)
    if validation_fraction == 0.0:
        return TrainingData(images.placed(chosen, device), None)
    cut = _held_out(images, name, validation_fraction, split_seed, split)
    if images.labels.ndim == 1:
        _warn_of_absent(
            images.labels, cut, name, lambda: family.describe(data_root(root), options).told_classes
        )
    if split != "recoloured":
        validation = images.subset(cut)
    elif family.recoloured is not None:
        validation = family.recoloured(data_root(root), options, cut, split_seed)
    else:
        raise ValueError(f"the images of {name} cannot be recoloured")
    # Cut before decoding, so that images are decoded directly into their places.
    train = images.subset(_others(len(images), cut))
    return TrainingData(train.placed(chosen, device), validation.placed(chosen, device))


def load_uncut(
    name: str,
    root: Path | None = None,
    validation_fraction: float = 0.0,
    split_seed: int = 0,
    *,
    split: ValidationSplit = "class",
    device: torch.device | str = "cpu",
) -> LabelledImages:
    """Return the training images as they were before classes were cut to unequal sizes.

    Those that `load_training`, given the same, holds out for validation are left out.

    Raises:
        ValueError: the classes of the dataset are not cut; else see `load_training`.
        DatasetMissing: the files are not in place, or damaged.
    """
    family, options = parse_image_dataset(name)
    if family.uncut is None or not family.describe(data_root(root), options).cut:
        raise ValueError(f"the classes of {name} are not cut to unequal sizes")
    family.check(data_root(root), options)
    whole, rows = family.uncut(data_root(root), options)
    if validation_fraction:
        held_out = _held_out(whole.subset(rows), name, validation_fraction, split_seed, split)
        whole = whole.subset(_others(len(whole), rows[held_out]))
    return whole.placed(default_placement(), device)


def _held_out(
    images: LabelledImages, name: str, fraction: float, seed: int, split: ValidationSplit
) -> Tensor:
    """Return the rows of training images that are held out for validation."""
    labelled: Tensor = torch.unique((images.labels != UNLABELLED).nonzero()[:, 0])
    if not len(labelled):
        labelled = torch.arange(len(images))
    bias = None if images.bias is None else images.bias[labelled]
    generator = torch_generator("validation split", name, seed)
    return labelled[held_out_rows(split, images.labels[labelled], bias, fraction, generator)]


def _warn_of_absent(
    labels: Tensor, held_out: Tensor, name: str, told_classes: Callable[[], Sequence[str]]
) -> None:
    """Warn of classes with training images of which none is held out: no score there says how they fare.

    `told_classes` returns the names of the classes, or their numbers.
    """
    classes = set(labels.tolist()) - {UNLABELLED}
    absent = sorted(classes - set(labels[held_out].tolist()))
    if absent and len(absent) < len(classes):
        told = told_classes()
        log.warning(
            "the validation split of %s has no image of %d of %d classes (%s), which have few images; a "
            "larger validation.fraction would help",
            name,
            len(absent),
            len(classes),
            few([told[label] for label in absent]),
        )


def _others(count: int, rows: Tensor) -> Tensor:
    """Return the rows of ``count`` that are not among ``rows``, ascending."""
    is_kept = torch.ones(count, dtype=torch.bool)
    is_kept[rows] = False
    return is_kept.nonzero().flatten()


def load_test(
    name: str,
    root: Path | None = None,
    fold: int = 0,
    *,
    placement: Placement | None = None,
    device: torch.device | str = "cpu",
) -> LabelledImages | Tensor:
    """Return the test images with their labels on ``device``, for the final evaluation only.

    Of a transductive dataset, whose test objects training has at hand, return their labels alone, on the CPU:
    int64 ``(N,)`` or ``(N, c)``, row i for the unlabelled object i of `load_transductive` with the same fold.

    Raises:
        ValueError: unknown dataset or placement, or no such fold.
        DatasetMissing: the files are not in place, or damaged.
    """
    family, options = _parse_fold(name, root, fold)
    chosen = default_placement() if placement is None else placement
    place = data_root(root)
    family.check(place, options)
    if isinstance(family, TransductiveFamily):
        return family.read_test(place, fold, options)
    return family.read(place, "test", options).placed(chosen, device)


def load_transductive(
    name: str, root: Path | None = None, fold: int = 0, validation: float = 0.0, split_seed: int = 0
) -> TransductiveData:
    """Load the part of one fold that training may see, and hold out some labelled objects for the search.

    ``fold`` is the number of the draw of labelled objects, ``validation`` the share to hold out, at most 0.5
    (0: nothing); `hold_out` says how. The dataset's options do not change which objects are held out.

    Raises:
        ValueError: unknown dataset, no such fold, a share or seed out of range, or no object would be left.
        DatasetMissing: the files are not in place, or hold something else.
    """
    family, options = _parse_fold(name, root, fold)
    if isinstance(family, TransductiveFamily):
        family.describe(data_root(root), options).check_validation(validation)
        family.check(data_root(root), options)
        labelled, unlabelled = family.read(data_root(root), fold, options)
        return hold_out(labelled, unlabelled, validation, split_seed, (family.name, fold))
    raise ValueError(f"dataset {family.name} holds labelled images and is not transductive")


def _parse_fold(name: str, root: Path | None, fold: int) -> tuple[Family, Options]:
    """Return the family and the options of a dataset that has this fold; images have the fold 0."""
    family, options = parse_dataset(name)
    folds = 1 if isinstance(family, DatasetFamily) else family.describe(data_root(root), options).folds
    if not 0 <= fold < folds:
        raise ValueError(f"fold of {name} must be 0..{folds - 1}, got {fold}")
    return family, options


def default_placement() -> Placement:
    """Return where encoded images are held: `$CONTRASWEEP_PLACEMENT`, else "auto".

    "resident": decoded into memory as uint8; "stream": decoded batch by batch; "auto": in memory if they
    fit (`data.machine_share.resident_limit`). The placement changes no pixel, so it is not an option of a
    dataset.
    Small datasets that are stored decoded (MNIST, CIFAR, the digits) are always in memory.

    Raises:
        ValueError: the variable holds another word.
    """
    given = os.environ.get(PLACEMENT_VARIABLE) or "auto"
    if given not in get_args(Placement):
        raise ValueError(unknown(PLACEMENT_VARIABLE, given, get_args(Placement)))
    return cast(Placement, given)
