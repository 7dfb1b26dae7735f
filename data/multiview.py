"""Several views of the same objects, which come with the data; each view has its own features."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from contrasweep.data.images import checked_rows


@dataclass(frozen=True, eq=False)
class MultiView:
    """A set of objects in memory, on one device.

    Attributes:
        views: one tensor for each view, float32 features ``(N, ...)`` or uint8 images ``(N, C, H, W)``; row i
            is object i in all of them.
        labels: int64 ``(N,)``; in a multi-label set ``(N, c)`` of 0 and 1; None if they are unknown or
            hidden.

    Raises:
        ValueError: there is no view, a tensor has the wrong type, shape or values, the lengths differ, or the
            devices differ.
    """

    views: tuple[Tensor, ...]
    labels: Tensor | None = None

    def __post_init__(self) -> None:
        if not self.views:
            raise ValueError("at least one view is needed, got none")
        named = {f"view {position}": view for position, view in enumerate(self.views, start=1)}
        for name, view in named.items():
            is_image = view.dtype == torch.uint8 and view.dim() == 4
            if not is_image and (view.dtype != torch.float32 or view.dim() < 2):
                given = f"{view.dtype} {tuple(view.shape)}"
                raise ValueError(f"{name} must be float32 (N, ...) or uint8 (N, C, H, W), got {given}")
        if self.labels is not None:
            _require_labels(self.labels)
            named["labels"] = self.labels
        if len({len(tensor) for tensor in named.values()}) > 1:
            lengths = ", ".join(f"{len(tensor)} of {name}" for name, tensor in named.items())
            raise ValueError(f"one row for each object is needed, got {lengths}")
        if len({tensor.device for tensor in named.values()}) > 1:
            devices = ", ".join(f"{name} on {tensor.device}" for name, tensor in named.items())
            raise ValueError(f"all tensors of a set live on one device, got {devices}")

    def __len__(self) -> int:
        return len(self.views[0])

    def subset(self, index: Tensor | Sequence[int]) -> "MultiView":
        """Return the rows of ``index`` (int64 ``(M,)``), in its order, as a copy.

        Raises:
            ValueError: ``index`` is not one-dimensional whole numbers, or names a missing row.
        """
        rows = checked_rows(index, len(self), self.views[0].device)
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
        raise ValueError(f"labels must be int64 (N,) or (N, c), got {labels.dtype} {tuple(labels.shape)}")
    if labels.dim() == 2 and labels.device.type != "meta" and not bool(((labels == 0) | (labels == 1)).all()):
        raise ValueError(f"columns of labels must hold 0 and 1, got {int(labels.min())}..{int(labels.max())}")
