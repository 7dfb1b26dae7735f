"""Transductive datasets: few labelled objects, and unlabelled ones that are the test set.

Training has the objects to be classified at hand, without their labels. A fold is one draw of the labelled
objects; every dataset has several.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import torch
from torch import Tensor

from contrasweep.data.facts import TransductiveSpec
from contrasweep.data.images import WrongTensors, checked_rows
from contrasweep.data.options import DatasetOption, Options, OptionsInName, OptionValue
from contrasweep.data.seeds import torch_generator


@dataclass(frozen=True, eq=False)
class MultiView:
    """A set of objects in memory, on one device, with several views that come with the data.

    Attributes:
        views: one tensor for each view, float32 features ``(N, ...)`` or uint8 images ``(N, C, H, W)``; row i
            is object i in all of them.
        labels: int64 ``(N,)``; in a multi-label set ``(N, c)`` of 0 and 1; None if they are unknown or
            hidden.

    Raises:
        WrongTensors: there is no view, a tensor has the wrong type, shape or values, the lengths differ, or
            the devices differ.
    """

    views: tuple[Tensor, ...]
    labels: Tensor | None = None

    def __post_init__(self) -> None:
        if not self.views:
            raise WrongTensors("at least one view is needed, got none")
        named = {f"view {position}": view for position, view in enumerate(self.views, start=1)}
        for name, view in named.items():
            is_image = view.dtype == torch.uint8 and view.dim() == 4
            if not is_image and (view.dtype != torch.float32 or view.dim() < 2):
                given = f"{view.dtype} {tuple(view.shape)}"
                raise WrongTensors(f"{name} must be float32 (N, ...) or uint8 (N, C, H, W), got {given}")
        if self.labels is not None:
            _require_labels(self.labels)
            named["labels"] = self.labels
        if len({len(tensor) for tensor in named.values()}) > 1:
            lengths = ", ".join(f"{len(tensor)} of {name}" for name, tensor in named.items())
            raise WrongTensors(f"one row for each object is needed, got {lengths}")
        if len({tensor.device for tensor in named.values()}) > 1:
            devices = ", ".join(f"{name} on {tensor.device}" for name, tensor in named.items())
            raise WrongTensors(f"all tensors of a set live on one device, got {devices}")

    def __len__(self) -> int:
        return len(self.views[0])

    def subset(self, index: Tensor | Sequence[int]) -> "MultiView":
        """Return the rows of ``index`` (int64 ``(M,)``), in its order, as a copy.

        Raises:
            ValueError: ``index`` is not one-dimensional whole numbers, or names a missing row.
        """
        return self.take(checked_rows(index, len(self), self.views[0].device))

    def take(self, rows: Tensor) -> "MultiView":
        """Return ``rows``, int64 ``(M,)`` on the same device, unchecked: a check would make the host wait."""
        return self._mapped(lambda tensor: tensor[rows])

    def to(self, device: torch.device | str) -> "MultiView":
        """Return the same set on ``device``; tensors that are there already are shared."""
        return self._mapped(lambda tensor: tensor.to(device))

    def without_labels(self) -> "MultiView":
        """Return only the views, without labels."""
        return MultiView(self.views)

    def _mapped(self, change: Callable[[Tensor], Tensor]) -> "MultiView":
        labels = None if self.labels is None else change(self.labels)
        return MultiView(tuple(map(change, self.views)), labels)


def _require_labels(labels: Tensor) -> None:
    if labels.dtype != torch.int64 or labels.dim() not in (1, 2):
        raise WrongTensors(f"labels must be int64 (N,) or (N, c), got {labels.dtype} {tuple(labels.shape)}")
    # Data is read on the CPU. To look at it again elsewhere would make the host wait.
    if labels.dim() == 2 and labels.device.type == "cpu" and not bool(((labels == 0) | (labels == 1)).all()):
        raise WrongTensors(
            f"columns of labels must hold 0 and 1, got {int(labels.min())}..{int(labels.max())}"
        )


@dataclass(frozen=True, eq=False)
class TransductiveData:
    """The part of one fold that training may see.

    Attributes:
        labelled: objects with their labels.
        unlabelled: objects without labels: the test objects in the order of `load_test`, then
            those of `validation`.
        validation: labelled objects held out of `labelled`, None if none were.
    """

    labelled: MultiView
    unlabelled: MultiView
    validation: MultiView | None = None


@dataclass(frozen=True)
class TransductiveFamily(OptionsInName):
    """Transductive datasets that differ in their options alone.

    `describe(root, options)` gives the facts, `check(root, options)` raises `DatasetMissing` unless the files
    are in place, `read(root, fold, options)` gives the labelled and the unlabelled objects (these without
    labels), and `read_test(root, fold, options)` gives the labels of the unlabelled ones.
    `settings` are as in `DatasetFamily`.
    """

    name: str
    summary: str
    describe: Callable[[Path, Options], TransductiveSpec]
    check: Callable[[Path, Options], None]
    read: Callable[[Path, int, Options], tuple[MultiView, MultiView]]
    read_test: Callable[[Path, int, Options], Tensor]
    options: Mapping[str, DatasetOption] = field(default_factory=lambda: MappingProxyType({}))
    settings: Mapping[str, OptionValue] | None = None

    @property
    def description(self) -> str:
        """What the datasets are, in one sentence."""
        return f"{self.summary}; its unlabelled objects are the test set"


def hold_out(
    labelled: MultiView, unlabelled: MultiView, share: float, split_seed: int, stream: tuple[str, int]
) -> TransductiveData:
    """Hold some of the labelled objects of one fold out for the search.

    The labelled objects are dealt to k parts with near-equal shares of every label (or label set), and one
    part is held out. ``split_seed`` 0..k-1 are the k parts of one deal, so k runs hold out every object once;
    the next k seeds are the parts of another deal. The views of the held-out objects join the unlabelled
    objects, as those of the test objects do: the search scores under the conditions of the final run.

    The share is 1/k for the nearest whole k, or 0 for none; see `check_validation`. ``stream``, the family's
    name and the fold, names the stream of chance.

    Raises:
        ValueError: the seed is negative.
    """
    if split_seed < 0:
        raise ValueError(f"split_seed must be 0 or more, got {split_seed}")
    if share == 0.0:
        return TransductiveData(labelled, unlabelled)
    assert labelled.labels is not None
    parts = round(1.0 / share)
    generator = torch_generator("validation parts", *stream, split_seed // parts)
    is_held_out = _deal(labelled.labels, parts, generator) == split_seed % parts
    held_out = labelled.subset(is_held_out.nonzero().flatten())
    seen = zip(unlabelled.views, held_out.views, strict=True)
    return TransductiveData(
        labelled.subset((~is_held_out).nonzero().flatten()),
        MultiView(tuple(torch.cat(both) for both in seen)),
        held_out,
    )


def _deal(labels: Tensor, parts: int, generator: torch.Generator) -> Tensor:
    """Return the part of each row, 0..parts-1, with near-equal shares of each label or label set."""
    order = torch.randperm(len(labels), generator=generator)
    _, group = torch.unique(labels, dim=0, return_inverse=True)
    by_group = order[group[order].argsort(stable=True)]
    part_of = torch.empty(len(labels), dtype=torch.int64)
    part_of[by_group] = torch.arange(len(labels)) % parts
    return part_of
