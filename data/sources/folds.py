"""Transductive datasets that label a few objects of one table: another few in each fold."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contrasweep.data.facts import TransductiveSpec
from contrasweep.data.options import DatasetOption, Options, spelled_name
from contrasweep.data.transductive import MultiView, TransductiveFamily


def table_family(
    name: str,
    summary: str,
    facts: Callable[[Options], Mapping[str, Any]],
    check: Callable[[Path, Options], None],
    read: Callable[[Path, Options], MultiView],
    labelled: Callable[[Tensor, int], Tensor],
    options: Mapping[str, DatasetOption],
) -> TransductiveFamily:
    """Return the family of a table; the objects without a label are the other rows of it.

    Args:
        name, summary, check, options: see `TransductiveFamily`.
        facts: returns the other fields of `TransductiveSpec`, by name.
        read: returns all objects with their labels.
        labelled: returns the rows that a fold labels, int64 ascending, from the labels and the fold's number.
    """

    def describe(root: Path, given: Options) -> TransductiveSpec:
        return TransductiveSpec(name=spelled_name(name, options, given), summary=summary, **facts(given))

    def split(whole: MultiView, fold: int) -> tuple[Tensor, Tensor]:
        assert whole.labels is not None
        rows = labelled(whole.labels, fold)
        is_other = torch.ones(len(whole), dtype=torch.bool)
        is_other[rows] = False
        return rows, is_other.nonzero().flatten()

    def read_fold(root: Path, fold: int, options: Options) -> tuple[MultiView, MultiView]:
        whole = read(root, options)
        rows, others = split(whole, fold)
        return whole.subset(rows), whole.subset(others).without_labels()

    def read_test(root: Path, fold: int, options: Options) -> Tensor:
        whole = read(root, options)
        assert whole.labels is not None
        return whole.labels[split(whole, fold)[1]]

    return TransductiveFamily(name, summary, describe, check, read_fold, read_test, options)


def fold_rows(groups: Tensor, folds: int, fold: int) -> Tensor:
    """Return the rows of one fold, int64 ascending, see `unshuffled_folds`."""
    return torch.from_numpy(unshuffled_folds(groups.numpy(), folds) == fold).nonzero().flatten()


def unshuffled_folds(groups: np.ndarray, folds: int) -> np.ndarray:
    """Return the fold of each row, 0..folds-1: scikit-learn's StratifiedKFold without shuffling.

    From a sorted list of the groups of all rows, fold f takes every ``folds``-th entry from f on. This gives
    the number of rows of each group in each fold; the rows of a group go to the folds in their order. Unlike
    scikit-learn, there is no warning for groups smaller than the number of folds, which label sets often are.

    Args:
        groups: ``(N,)``, any values that can be sorted.
        folds: the number of folds.
    """
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    # Groups are numbered by first appearance; the numbers decide which folds get the remainders.
    number = np.argsort(np.argsort(first))[inverse]
    in_order = np.sort(number)
    counts = np.stack([np.bincount(in_order[fold::folds], minlength=len(first)) for fold in range(folds)])
    fold_of = np.empty(len(groups), dtype=np.int64)
    for group in range(len(first)):
        fold_of[number == group] = np.repeat(np.arange(folds), counts[:, group])
    return fold_of
