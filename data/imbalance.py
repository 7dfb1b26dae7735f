"""Training sets whose classes differ in size, cut out of a balanced one.

Source: Zheng et al., "Contrastive Attraction and Contrastive Repulsion for Representation Learning", Section
5.2, as in the released code.
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, cast

import torch
from torch import Tensor

from contrasweep.data.images import LabelledImages
from contrasweep.data.seeds import torch_generator
from contrasweep.data.spec import DatasetOption, Options

Rule = Literal["linear", "exponential"]

IMBALANCE_OPTIONS: Mapping[str, DatasetOption] = MappingProxyType(
    {
        "imbalance": DatasetOption(
            "how the sizes of the training classes grow with their number",
            str,
            "none",
            choices=("none", "linear", "exponential"),
        ),
        "at_least": DatasetOption(
            "training images that every class of an imbalanced set keeps", int, 0, low=0
        ),
    }
)
"""The options of every family that can be cut to unequal classes."""


def imbalanced_counts(counts: Sequence[int], rule: Rule, group_size: int = 1, at_least: int = 0) -> list[int]:
    """Return how many images of each class stay.

    Of the n images of a class in level l of L, ``floor(n l / L)`` stay by the linear rule and
    ``floor(n e^(l - L))`` by the exponential one. Classes in groups of ``group_size`` form the levels, so
    that level 1 holds classes 0..group_size-1.

    Args:
        counts: images of each class.
        rule: which of the two.
        group_size: neighbouring classes that share a level: 1, or 10 for CIFAR-100 in the paper.
        at_least: what a class keeps where the rule says fewer, as far as it has them.

    Raises:
        ValueError: the groups do not divide the classes, or no image of a class would stay.
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
        if not kept[-1]:
            raise ValueError(
                f"{rule} imbalance leaves none of the {count:,} images of class {label}, "
                f"level {level} of {levels}; at_least=1 keeps one"
            )
    return kept


def imbalanced_rows(labels: Tensor, name: str, kept: Sequence[int]) -> Tensor:
    """Return the rows that stay, ``kept[c]`` of each class c, ascending.

    Which rows depends on the dataset's name alone, and a smaller cut is part of a larger one.

    Args:
        labels: int64 ``(N,)``.
        name: names the stream of chance.
        kept: images of each class that stay, see `imbalanced_counts`.

    Raises:
        ValueError: a class has fewer images than are to stay, or none are to.
    """
    rows = []
    for label, count in enumerate(kept):
        members = (labels == label).nonzero().flatten()
        if not 1 <= count <= len(members):
            raise ValueError(f"{count} images of class {label} are to stay, it has {len(members)}")
        order = torch.randperm(len(members), generator=torch_generator("imbalance", name, label))
        rows.append(members[order[:count]])
    return torch.cat(rows).sort().values


def kept_counts(counts: Sequence[int], options: Options, group_size: int = 1) -> list[int]:
    """Return the training images of each class that a dataset with `IMBALANCE_OPTIONS` holds.

    Raises:
        ValueError: no image of a class would stay, or there is a minimum without imbalance.
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
    """Return the training images that the options leave: all of them unless there is imbalance.

    Args:
        images: a whole training split.
        name: the family's name, which says which rows stay.
        counts: how many images of each class the split holds.
        options: with the values of `IMBALANCE_OPTIONS`.
        group_size: see `imbalanced_counts`.

    Raises:
        ValueError: see `kept_counts`.
    """
    kept = kept_counts(counts, options, group_size)
    if options["imbalance"] == "none":
        return images
    return images.subset(imbalanced_rows(images.labels, name, kept))
