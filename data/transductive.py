"""The transductive datasets by name: what each one is, what training may see of it, and its test labels.

Training and test labels come from different functions on purpose, as with images: whoever trains or searches
calls `load_transductive`, which hands out no label of an unlabelled object; only the final evaluation calls
`load_transductive_test`.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import torch
from torch import Tensor

from contrasweep.data.multiview import MultiView
from contrasweep.data.names import unknown
from contrasweep.data.root import data_root
from contrasweep.data.seeds import torch_generator
from contrasweep.data.sources.celeba import CELEBA
from contrasweep.data.sources.noisy_views import NOISY_MNIST_1V, NOISY_MNIST_2V, TWO_VIEW_DIGITS
from contrasweep.data.sources.scene import SCENE
from contrasweep.data.sources.xrmb import XRMB
from contrasweep.data.spec import Options
from contrasweep.data.transductive_spec import TransductiveData, TransductiveFamily, TransductiveSpec

TRANSDUCTIVE: Mapping[str, TransductiveFamily] = MappingProxyType(
    {family.name: family for family in (TWO_VIEW_DIGITS, SCENE, NOISY_MNIST_1V, NOISY_MNIST_2V, XRMB, CELEBA)}
)
"""Every family of transductive datasets by its name; `transductive_spec` gives the facts of one member."""


def parse_transductive(name: str) -> tuple[TransductiveFamily, Options]:
    """Return the family and the options that a transductive dataset's name says.

    Raises:
        ValueError: there is no such dataset or option (the message names the nearest), or a value is not
            allowed.
    """
    bare, _, given = name.partition(":")
    if bare not in TRANSDUCTIVE:
        raise ValueError(unknown("transductive dataset", bare, TRANSDUCTIVE))
    return TRANSDUCTIVE[bare], TRANSDUCTIVE[bare].parse(given)


def transductive_spec(name: str) -> TransductiveSpec:
    """Return the facts of the transductive dataset called ``name`` (`NAME` or `NAME:OPTION=VALUE,...`).

    Raises:
        ValueError: see `parse_transductive`.
    """
    family, options = parse_transductive(name)
    return family.describe(options)


def check_transductive(name: str, root: Path | None = None) -> None:
    """Check that the files of a transductive dataset are in place, without reading them.

    Raises:
        ValueError: see `parse_transductive`.
        DatasetMissing: its folder or a file is absent or has the wrong size.
    """
    family, options = parse_transductive(name)
    family.check(data_root(root), options)


def load_transductive(
    name: str, root: Path | None = None, fold: int = 0, validation: float = 0.0, split_seed: int = 0
) -> TransductiveData:
    """Load what training may see of one fold, and hold some of its labelled objects out for the search.

    The labelled objects are dealt to k parts with near-equal shares of every label (or label set), and one
    part is held out. ``split_seed`` 0..k-1 are the k parts of one deal, so that k runs hold out every object
    once; the next k are those of another deal. The dataset's options have no say in it. The views of what is
    held out join the unlabelled objects, as those of the test set do: the search scores under the conditions
    of the final run.

    Args:
        name: a name of `TRANSDUCTIVE`, with options.
        root: the folder that holds the datasets, see `data_root`.
        fold: which draw of the labelled objects.
        validation: the share held out, 1/k for the nearest whole k; at most 0.5, and 0 for none.
        split_seed: which part of which deal, from 0.

    Raises:
        ValueError: unknown dataset, no such fold, a share or seed out of range, or one that leaves nothing.
        DatasetMissing: the files are not in place, or hold something else.
    """
    if not 0.0 <= validation <= 0.5:
        raise ValueError(f"validation must be in 0..0.5, got {validation}")
    if split_seed < 0:
        raise ValueError(f"split_seed must be 0 or more, got {split_seed}")
    family, options = _checked(name, root, fold)
    labelled, unlabelled = family.read(data_root(root), fold, options)
    if validation == 0.0:
        return TransductiveData(labelled, unlabelled)
    parts = round(1.0 / validation)
    if parts > len(labelled):
        raise ValueError(f"validation {validation:g} of {len(labelled)} labelled objects holds none out")
    assert labelled.labels is not None
    generator = torch_generator("validation parts", family.name, fold, split_seed // parts)
    part_of = _deal(labelled.labels, parts, generator)
    is_held_out = part_of == split_seed % parts
    held_out = labelled.subset(is_held_out.nonzero().flatten())
    seen = zip(unlabelled.views, held_out.views, strict=True)
    return TransductiveData(
        labelled.subset((~is_held_out).nonzero().flatten()),
        MultiView(tuple(torch.cat(both) for both in seen)),
        held_out,
    )


def load_transductive_test(name: str, root: Path | None = None, fold: int = 0) -> Tensor:
    """Load the labels of the unlabelled objects of one fold: for the final evaluation only.

    Returns:
        int64 ``(N,)`` or ``(N, c)``, row i for object i of `load_transductive`'s unlabelled ones.

    Raises:
        ValueError: unknown dataset, or no such fold.
        DatasetMissing: the files are not in place, or hold something else.
    """
    family, options = _checked(name, root, fold)
    return family.read_test(data_root(root), fold, options)


def _checked(name: str, root: Path | None, fold: int) -> tuple[TransductiveFamily, Options]:
    """Return the family and the options, with the files in place and the fold among those there are."""
    family, options = parse_transductive(name)
    folds = family.describe(options).folds
    if not 0 <= fold < folds:
        raise ValueError(f"fold of {name} must be 0..{folds - 1}, got {fold}")
    family.check(data_root(root), options)
    return family, options


def _deal(labels: Tensor, parts: int, generator: torch.Generator) -> Tensor:
    """Return the part of each row, 0..parts-1, with near-equal shares of each label or label set."""
    order = torch.randperm(len(labels), generator=generator)
    _, group = torch.unique(labels, dim=0, return_inverse=True)
    by_group = order[group[order].argsort(stable=True)]
    part_of = torch.empty(len(labels), dtype=torch.int64)
    part_of[by_group] = torch.arange(len(labels)) % parts
    return part_of
