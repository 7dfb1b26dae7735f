"""Training sets with classes of different sizes, cut from a balanced set.

Source: Zheng et al., "Contrastive Attraction and Contrastive Repulsion for Representation Learning", Section
5.2, as in the released code.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal, cast, get_args

import torch
from torch import Tensor

from contrasweep.data.images import LabelledImages
from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.seeds import torch_generator

Rule = Literal["linear", "exponential"]

IMBALANCE_OPTIONS: Mapping[str, DatasetOption] = {
    "imbalance": DatasetOption(
        "how the sizes of the training classes grow with their number", str, "none", ("none", *get_args(Rule))
    ),
    "at_least": DatasetOption("training images that every class of an imbalanced set keeps", int, 0, low=0),
}
"""The options of every family that can have unequal classes."""


def imbalanced_counts(counts: Sequence[int], rule: Rule, group_size: int = 1, at_least: int = 0) -> list[int]:
    """Return the number of images of each class to keep.

    Of the n images of a class in level l of L, the linear rule keeps ``floor(n l / L)`` and the exponential
    one ``floor(n e^(l - L))``; a class never keeps fewer than ``at_least``, if it has as many. Groups of
    ``group_size`` classes (10 for CIFAR-100 in the paper) form the levels: level 1 holds classes
    0..group_size-1.

    Raises:
        ValueError: the groups do not divide the classes, or a class that has images would keep none.
    """
    if group_size < 1 or len(counts) % group_size:
        raise ValueError(f"groups of {group_size} do not divide {len(counts)} classes")
    levels = len(counts) // group_size
    kept = []
    for label, count in enumerate(counts):
        level = label // group_size + 1
        by_exponent = math.floor(count * math.exp(level - levels))
        stay = count * level // levels if rule == "linear" else by_exponent
        kept.append(max(stay, min(at_least, count)))
        if count and not kept[-1]:
            raise ValueError(
                f"{rule} imbalance leaves none of the {count:,} images of class {label}, "
                f"level {level} of {levels}; at_least=1 keeps one"
            )
    return kept


def imbalanced_rows(labels: Tensor, name: str, kept: Sequence[int]) -> Tensor:
    """Return the rows to keep, ``kept[c]`` of each class c of ``labels``, int64 ``(N,)``, ascending.

    They depend only on ``name``, the dataset's. The rows of a smaller cut are part of those of a larger one.

    Raises:
        ValueError: a class has fewer images than it should keep, or has images of which none is kept.
    """
    rows = []
    for label, count in enumerate(kept):
        members = (labels == label).nonzero().flatten()
        if not min(1, len(members)) <= count <= len(members):
            raise ValueError(f"{count} images of class {label} are to stay, it has {len(members)}")
        order = torch.randperm(len(members), generator=torch_generator("imbalance", name, label))
        rows.append(members[order[:count]])
    return torch.cat(rows).sort().values


def kept_counts(counts: Sequence[int], options: Options, group_size: int = 1) -> list[int]:
    """Return the number of training images of each class in a dataset with `IMBALANCE_OPTIONS`.

    Raises:
        ValueError: see `imbalanced_counts`, or a minimum is given without imbalance.
    """
    rule, at_least = str(options["imbalance"]), int(options["at_least"])
    if rule == "none":
        if at_least:
            raise ValueError(f"at_least={at_least} has a meaning with imbalance=linear or exponential only")
        return list(counts)
    return imbalanced_counts(counts, cast(Rule, rule), group_size, at_least)


def imbalanced(
    images: LabelledImages, name: str, counts: Sequence[int], options: Options, group_size: int = 1
) -> LabelledImages:
    """Return the images of a training split that remain with `IMBALANCE_OPTIONS`; all without imbalance.

    ``name`` is the family's, ``counts`` are the images of each class in the split. Errors: see `kept_counts`.
    """
    if not is_cut(options):
        kept_counts(counts, options, group_size)
        return images
    return images.subset(rows_left(images, name, counts, options, group_size))


def rows_left(
    images: LabelledImages, name: str, counts: Sequence[int], options: Options, group_size: int = 1
) -> Tensor:
    """Return which rows of a whole training split `imbalanced` keeps, int64 ``(M,)``, ascending."""
    return imbalanced_rows(images.labels, name, kept_counts(counts, options, group_size))


def is_cut(options: Options) -> bool:
    """Return whether classes are cut to unequal sizes."""
    return options["imbalance"] != "none"
