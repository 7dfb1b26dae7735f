"""Clusters from a hierarchy of classes, such as WordNet's: images whose classes share an ancestor.

A hierarchy file has one `PARENT CHILD` pair in each line, like ImageNet's `wordnet.is_a.txt`. The root is at
level 1, its children at level 2, and so on (Tsai et al., ICLR 2022, Appendix B.1).

A class above the requested level is its own cluster, as in the authors' released code. So the level of the
deepest class gives the labels. A deeper level is refused: it would add nothing.

The paper needs a tree, while WordNet has nodes with several parents. The authors use only classes with one
path to the root. This module does the same, or on request keeps the parent that the file lists first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import torch
from torch import Tensor

from contrasweep.given_files import MIB, read_given_text
from contrasweep.names import did_you_mean, few_quoted

SeveralParents = Literal["error", "first"]

MOST_BYTES = 256 * MIB
"""The size of the largest file of a hierarchy that is read; WordNet's has 2 MiB."""


@dataclass(frozen=True)
class Hierarchy:
    """The parents of every node except the root, in the order of the file."""

    parents: Mapping[str, tuple[str, ...]]

    def lineage(self, name: str, several_parents: SeveralParents = "error") -> tuple[str, ...]:
        """Return the path from the root to ``name``, both included: the ancestor at level l is item l - 1.

        Args:
            name: a node.
            several_parents: at a node with several parents, ``"error"`` refuses it, ``"first"`` follows the
                parent that the file lists first.

        Raises:
            ValueError: there is no such node, a node is its own ancestor, or one has several parents.
        """
        self._check_known(name)
        way = [name]
        while above := self.parents.get(way[-1]):
            if len(above) > 1 and several_parents == "error":
                raise ValueError(
                    f"{way[-1]!r} has several parents: {few_quoted(above, most=9)} (on the way from {name!r} "
                    "to the root); leave the class out, or pass several_parents='first'"
                )
            if above[0] in way:
                circle = " > ".join([above[0], *reversed(way[way.index(above[0]) :])])
                raise ValueError(f"the hierarchy runs in a circle: {circle}")
            way.append(above[0])
        return tuple(reversed(way))

    def _check_known(self, name: str) -> None:
        if name in self.parents:
            return
        nodes = {*self.parents, *(parent for parents in self.parents.values() for parent in parents)}
        if name not in nodes:
            raise ValueError(
                f"class {name!r} is not among the {len(nodes):,} nodes of the hierarchy."
                f"{did_you_mean(name, sorted(nodes))}"
            )


def read_hierarchy(path: Path) -> Hierarchy:
    """Read a hierarchy from a file of `PARENT CHILD` lines; empty lines and repeated lines do not matter.

    Raises:
        ValueError: the file cannot be read or holds no pair, or a line is not a pair (the message names it).
    """
    lines = read_given_text(path, MOST_BYTES).splitlines()
    parents: dict[str, dict[str, None]] = {}
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not words:
            continue
        if len(words) != 2:
            raise ValueError(f"{path}, line {number}: a line is PARENT CHILD, given {line!r}")
        parents.setdefault(words[1], {})[words[0]] = None
    if not parents:
        raise ValueError(f"{path} holds no PARENT CHILD line")
    return Hierarchy({child: tuple(above) for child, above in parents.items()})


def hierarchy_clusters(
    labels: Tensor,
    classes: Sequence[str],
    hierarchy: Hierarchy,
    level: int,
    several_parents: SeveralParents = "error",
) -> Tensor:
    """Return the cluster of each image: the ancestor of its class at ``level``.

    Clusters are numbered in the order of ``classes``, whether or not the classes have images.

    Args:
        labels: ``(N,)`` whole numbers, positions in ``classes``.
        classes: the name of each class in the hierarchy.
        hierarchy: the ancestors.
        level: 1 (the root, one cluster) up to the level of the deepest class (the labels).
        several_parents: see `Hierarchy.lineage`.

    Returns:
        int64 ``(N,)`` on the CPU.

    Raises:
        ValueError: a class is unknown or has several paths to the root, or a level or a label is out of
            range.
    """
    if several_parents not in get_args(SeveralParents):
        allowed = ", ".join(get_args(SeveralParents))
        raise ValueError(f"several_parents must be one of {allowed}, got {several_parents!r}")
    labels = labels.detach().cpu()
    if labels.dim() != 1 or labels.is_floating_point() or not len(labels):
        raise ValueError(f"labels must be whole numbers (N,), got {labels.dtype} {tuple(labels.shape)}")
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= len(classes):
        raise ValueError(
            f"labels must be 0..{len(classes) - 1}, one of {len(classes)} classes, got {low}..{high}"
        )
    lineages = [hierarchy.lineage(name, several_parents) for name in classes]
    deepest = max(map(len, lineages))
    if not 1 <= level <= deepest:
        raise ValueError(f"level must be 1 (the root) .. {deepest} (the deepest class), got {level}")
    ancestors = [lineage[min(level, len(lineage)) - 1] for lineage in lineages]
    number = {name: position for position, name in enumerate(dict.fromkeys(ancestors))}
    return torch.tensor([number[name] for name in ancestors])[labels.long()]
