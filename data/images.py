"""Images with their labels and conditioning variable, held as the tensors that training reads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """One split of a dataset, all of it in memory on one device.

    Attributes:
        images: uint8 ``(N, C, H, W)``, 0..255.
        labels: int64 ``(N,)``; of a multi-label set ``(N, c)``, columns of 0 and 1.
        condition: float32 ``(N, Dz)``, the conditioning (or sensitive) variable, or None.
        bias: int64 ``(N,)``, the bias label that the class must not be read from, or None.

    Raises:
        ValueError: a tensor has the wrong type or shape, the lengths differ, or the devices differ.
    """

    images: Tensor
    labels: Tensor
    condition: Tensor | None = None
    bias: Tensor | None = None

    def __post_init__(self) -> None:
        _require("images", self.images, torch.uint8, "(N, C, H, W)", (4,))
        _require("labels", self.labels, torch.int64, "(N,) or (N, c)", (1, 2))
        named = {"images": self.images, "labels": self.labels}
        if self.condition is not None:
            _require("condition", self.condition, torch.float32, "(N, Dz)", (2,))
            named["condition"] = self.condition
        if self.bias is not None:
            _require("bias", self.bias, torch.int64, "(N,)", (1,))
            named["bias"] = self.bias
        if len({len(tensor) for tensor in named.values()}) > 1:
            lengths = ", ".join(f"{len(tensor)} {name}" for name, tensor in named.items())
            raise ValueError(f"one row for each image is needed, got {lengths}")
        if len({tensor.device for tensor in named.values()}) > 1:
            devices = ", ".join(f"{name} on {tensor.device}" for name, tensor in named.items())
            raise ValueError(f"all tensors of a split live on one device, got {devices}")

    def __len__(self) -> int:
        return len(self.images)

    def subset(self, index: Tensor | Sequence[int]) -> "LabelledImages":
        """Return the rows of ``index`` (int64 ``(M,)``), in its order, as a copy.

        Raises:
            ValueError: ``index`` is not one-dimensional whole numbers, or names a row that is not there.
        """
        rows = torch.as_tensor(index, device=self.images.device)
        if rows.numel() == 0:
            rows = rows.long()
        if rows.dtype != torch.int64 or rows.dim() != 1:
            raise ValueError(f"index must be int64 (M,), got {rows.dtype} {tuple(rows.shape)}")
        if len(rows) and not bool(((rows >= 0) & (rows < len(self))).all()):
            raise ValueError(f"index must be in 0..{len(self) - 1}, got {int(rows.min())}..{int(rows.max())}")
        return self._mapped(lambda tensor: tensor[rows])

    def to(self, device: torch.device | str) -> "LabelledImages":
        """Return the same images on ``device``; the tensors are shared when they are there already."""
        return self._mapped(lambda tensor: tensor.to(device))

    def _mapped(self, change: Callable[[Tensor], Tensor]) -> "LabelledImages":
        condition = None if self.condition is None else change(self.condition)
        bias = None if self.bias is None else change(self.bias)
        return LabelledImages(change(self.images), change(self.labels), condition, bias)


def _require(name: str, tensor: Tensor, dtype: torch.dtype, shape: str, dimensions: tuple[int, ...]) -> None:
    if tensor.dtype != dtype or tensor.dim() not in dimensions:
        raise ValueError(f"{name} must be {dtype} {shape}, got {tensor.dtype} {tuple(tensor.shape)}")
