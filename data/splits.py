"""Parts of a labelled set in which every label keeps its share: validation splits, and parts for quick runs.

`cifar10:images=5000,test_images=2000` is the first images of a fixed order, so a smaller part lies within a
larger one.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from contrasweep.data.facts import DatasetSpec
from contrasweep.data.images import UNLABELLED, LabelledImages
from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.root import DatasetDamaged
from contrasweep.data.seeds import torch_generator
from contrasweep.data.spec import DatasetFamily, Split
from contrasweep.names import counted

SUBSET_OPTIONS: Mapping[str, DatasetOption] = {
    "images": DatasetOption("training images kept, each class's share; 0: all of them", int, 0, low=0),
    "test_images": DatasetOption("the same of the test images", int, 0, low=0),
}
"""The options of every family of labelled images."""


OWN_TEST_SHARE = 0.1
"""The share of the images that becomes the test split of data without one."""

CUT = "; 10 % of them, of each class, are cut off as test images, the same in every run"
"""What the summary of a dataset says of test images that `own_test_rows` cuts off."""

ValidationSplit = Literal["class", "group", "recoloured"]
"""How validation images are chosen; `held_out_rows` says which rows are."""


def held_out_rows(
    split: ValidationSplit, labels: Tensor, bias: Tensor | None, fraction: float, generator: torch.Generator
) -> Tensor:
    """Return the rows of the validation images, ``round(fraction * N)`` of them, int64 and ascending.

    Args:
        split: `class`: every label gives its share. `group`: every (label, bias) group gives its share,
            rounded up or down. `recoloured`: every label gives its share, from its largest groups first, so
            that the rows with a rare bias stay; the images then get another bias.
        labels: int64 ``(N,)``.
        bias: int64 ``(N,)``; None is allowed for `class` alone.
        fraction: the share to cut out, above 0 and below 1.
        generator: a CPU generator.

    Raises:
        ValueError: see `stratified_split`; or there is no bias.
    """
    if split == "class":
        return stratified_split(labels, fraction, generator)[1]
    if bias is None:
        raise ValueError(f"a validation split by {split} is for data with a bias")
    size = _size(len(labels), fraction)
    order = torch.randperm(len(labels), generator=generator)
    shuffled = labels.cpu()[order]
    group, rank, _ = _ranked(torch.stack([shuffled, bias.cpu()[order]], dim=1))
    if split == "group":
        chosen = _evenly_spaced(group, size, generator)
    else:
        shares = _shares(shuffled, fraction, size)
        chosen = torch.cat([_deepest(shuffled == label, rank, share) for label, share in shares.items()])
    return order[chosen].sort().values


def stratified_split(labels: Tensor, fraction: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Cut ``round(fraction * N)`` rows out of N, each label in proportion to its count.

    Shares are rounded by largest remainder, so that the part has exactly the requested size. A CPU generator
    draws the rows of each label in ``labels``, int64 ``(N,)``. Returns the kept rows and the cut rows, both
    int64 and ascending.

    Raises:
        ValueError: the fraction is not between 0 and 1, or one side would be empty.
    """
    size = _size(len(labels), fraction)
    order = torch.randperm(len(labels), generator=generator)
    shuffled = labels.cpu()[order]
    # The numbers of the groups are those of the shares, both by label: no loop over thousands of labels.
    group, rank, _ = _ranked(shuffled)
    shares = torch.tensor(list(_shares(shuffled, fraction, size).values()))
    is_cut = torch.zeros(len(labels), dtype=torch.bool)
    is_cut[order[rank < shares[group]]] = True
    return (~is_cut).nonzero().flatten(), is_cut.nonzero().flatten()


def halved_rows(labels: Tensor, bias: Tensor | None, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return the rows of two halves, int64 and ascending; of an odd number the first has one row more.

    Every group of equal labels (int64 ``(N,)``, or sets of them ``(N, c)``) and, where there is one, equal
    ``bias`` gives its half, rounded up or down. A CPU generator draws the rows.

    Raises:
        ValueError: there are fewer than 2 rows.
    """
    if len(labels) < 2:
        raise ValueError(f"{len(labels)} rows cannot be halved")
    columns = labels.reshape(len(labels), -1).cpu()
    if bias is not None:
        columns = torch.cat([columns, bias.cpu()[:, None]], dim=1)
    order = torch.randperm(len(labels), generator=generator)
    group, _, _ = _ranked(columns[order])
    is_second = torch.zeros(len(labels), dtype=torch.bool)
    is_second[order[_evenly_spaced(group, len(labels) // 2, generator)]] = True
    return (~is_second).nonzero().flatten(), is_second.nonzero().flatten()


def own_test_rows(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows of the training and of the test images of data that has no test split of its own.

    `OWN_TEST_SHARE` of the images are cut off, each class in proportion, the same in every run: the draw
    depends on ``labels``, int64 ``(N,)``, alone. Where some images have no label, the test images have one.

    Raises:
        DatasetDamaged: there are too few images to cut some off.
    """
    known = (labels != UNLABELLED).nonzero().flatten()
    among = known if len(known) else torch.arange(len(labels))
    try:
        _, cut = stratified_split(labels[among], OWN_TEST_SHARE, torch_generator("own test split"))
    except ValueError:
        fewest = int(0.5 / OWN_TEST_SHARE) + 1
        raise DatasetDamaged(
            f"a tenth of the images becomes the test split, given {counted(len(among), 'image')}; allowed: "
            f"{fewest} or more, or test images of their own"
        ) from None
    is_kept = torch.ones(len(labels), dtype=torch.bool)
    is_kept[among[cut]] = False
    return is_kept.nonzero().flatten(), among[cut]


def _size(rows: int, fraction: float) -> int:
    if not 0.0 < fraction < 1.0:
        raise ValueError(f"the fraction must be above 0 and below 1, got {fraction}")
    size = round(fraction * rows)
    if size in (0, rows):
        raise ValueError(f"a fraction of {fraction} of {rows} images leaves one side empty")
    return size


def _ranked(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the groups of equal rows, their number 0, 1, ... within the group, and the sizes of the groups.

    Groups are numbered in the order of their rows.
    """
    # With `dim`, single numbers would be compared as slowly as rows are.
    dim = 0 if rows.dim() > 1 else None
    _, group, sizes = torch.unique(rows, dim=dim, return_inverse=True, return_counts=True)
    by_group = group.argsort(stable=True)
    rank = torch.empty_like(group)
    rank[by_group] = torch.arange(len(group)) - (sizes.cumsum(0) - sizes)[group[by_group]]
    return group, rank, sizes


def _evenly_spaced(group: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """Return ``size`` rows at even distances of the list of all groups; the first is drawn.

    So a group of n rows of N gives ``n * size / N`` of them, rounded up or down, and neighbouring groups
    together do too. Groups are numbered by label, then bias.
    """
    by_group = group.argsort(stable=True)
    start = torch.rand((), generator=generator, dtype=torch.float64)
    places = ((torch.arange(size) + start) * (len(group) / size)).long()
    return by_group[places.clamp_max(len(group) - 1)]


def _deepest(members: Tensor, rank: Tensor, share: int) -> Tensor:
    """Return ``share`` of the rows in the mask ``members``, those with the largest numbers in their groups.

    So the largest group shrinks first, to the size of the next, then both together.
    """
    rows = members.nonzero().flatten()
    return rows[rank[rows].argsort(descending=True, stable=True)[:share]]


def _shares(labels: Tensor, fraction: float, size: int) -> dict[int, int]:
    """Return the number of rows to cut from each label, ``size`` in all, by largest remainder."""
    names, counts = torch.unique(labels, return_counts=True)
    exact = fraction * counts.double()
    shares = exact.floor().long()
    short = size - int(shares.sum())
    remainder = exact - shares
    shares[remainder.argsort(descending=True, stable=True)[:short]] += 1
    return dict(zip(names.tolist(), shares.tolist(), strict=True))


def subset_rows(labels: Tensor, count: int, name: str) -> Tensor:
    """Return ``count`` rows, ascending: the share of each class, to within one row, and at least one row.

    The rows depend only on ``name`` and the labels, int64 ``(N,)``, or ``(N, c)`` for several labels per
    image, where equal rows form a class. The rows of a smaller count are among those of a larger one.

    Raises:
        ValueError: the count is not from the number of classes up to N.
    """
    order = torch.randperm(len(labels), generator=torch_generator("subset", name))
    group, rank, sizes = _ranked(labels.cpu()[order])
    if not len(sizes) <= count <= len(labels):
        raise ValueError(f"{count} of {len(labels):,} images in {len(sizes)} classes cannot be kept")
    # The n-th image of a class of m comes at n/m of the order, so that all classes end together. The first
    # images of all classes come first.
    place = torch.where(rank > 0, (rank + 0.5) / sizes[group], 0.0)
    first = place.argsort(stable=True)[:count]
    return order[first].sort().values


def with_subset(family: DatasetFamily) -> DatasetFamily:
    """Return the same family with `SUBSET_OPTIONS`."""

    def describe(root: Path, options: Options) -> DatasetSpec:
        spec = family.describe(root, _without(options))
        kept = {name: int(options[name]) for name in SUBSET_OPTIONS if options[name]}
        if "images" in kept and spec.unlabelled_size and spec.has_labels:
            raise ValueError(f"images={kept['images']} of dataset {spec.name}: not all images have a label")
        for name, count in kept.items():
            size = spec.train_size if name == "images" else spec.test_size
            if not spec.classes <= count <= size:
                allowed = f"{spec.classes} to {size}"
                raise ValueError(f"{name} of dataset {spec.name} must be {allowed}, given {count}")
        sizes = kept.get("images", spec.train_size), kept.get("test_images", spec.test_size)
        name = cut.full_name(options) if kept else spec.name
        unlabelled = spec.unlabelled_size if spec.has_labels else sizes[0]
        return replace(
            spec,
            name=name,
            train_size=sizes[0],
            test_size=sizes[1],
            unlabelled_size=unlabelled,
            cut=spec.cut and "images" not in kept,
        )

    def check(root: Path, options: Options) -> None:
        family.check(root, _without(options))
        if any(options[name] for name in SUBSET_OPTIONS):
            describe(root, options)

    def read(root: Path, split: Split, options: Options) -> LabelledImages:
        images = family.read(root, split, _without(options))
        count = int(options["images" if split == "train" else "test_images"])
        return images.subset(subset_rows(images.labels, count, family.name)) if count else images

    def recoloured(root: Path, options: Options, rows: Tensor, seed: int) -> LabelledImages:
        assert family.recoloured is not None, "given where the family can"
        if count := int(options["images"]):
            labels = family.read(root, "train", _without(options)).labels
            rows = subset_rows(labels, count, family.name)[rows]
        return family.recoloured(root, _without(options), rows, seed)

    def uncut(root: Path, options: Options) -> tuple[LabelledImages, Tensor]:
        assert family.uncut is not None, "given where the family can"
        assert not options["images"], "such a dataset does not count as cut"
        return family.uncut(root, _without(options))

    cut = replace(
        family,
        options={**family.options, **SUBSET_OPTIONS},
        describe=describe,
        check=check,
        read=read,
        recoloured=None if family.recoloured is None else recoloured,
        uncut=None if family.uncut is None else uncut,
    )
    return cut


def _without(options: Options) -> Options:
    return {name: value for name, value in options.items() if name not in SUBSET_OPTIONS}
