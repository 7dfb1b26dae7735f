"""Images with their labels and conditioning variable, for training."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from contrasweep.data.streaming import Images, Placement, StreamedImages, place

UNLABELLED = -1
"""The label of an unlabelled image. Only pretraining uses such images, never a probe or a split."""


class WrongTensors(ValueError):
    """Tensors cannot be images or objects with labels; the message says what is given and what is allowed."""


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """One split of a dataset, on one device; only the pixels may stay on disk.

    Attributes:
        images: uint8 ``(N, C, H, W)``, 0..255: a tensor or `StreamedImages`. `image_batches` and
            `image_chunks` draw batches from either; `pixels` gives a tensor.
        labels: int64 ``(N,)``, -1 for an unlabelled image; in a multi-label set ``(N, c)`` of 0 and 1.
        condition: float32 ``(N, Dz)``, the conditioning (or sensitive) variable, or None.
        bias: int64 ``(N,)``, the bias label, which should not help to predict the class, or None.
        groupings: int64 ``(N, G)``, the cluster of each image in each of G groupings, or None. A test
            accuracy averages over them; training does not use them.

    Raises:
        WrongTensors: a tensor has the wrong type or shape, the lengths differ, or the devices differ.
    """

    images: Images
    labels: Tensor
    condition: Tensor | None = None
    bias: Tensor | None = None
    groupings: Tensor | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.images, StreamedImages):
            _require("images", self.images, torch.uint8, "(N, C, H, W)", (4,))
        _require("labels", self.labels, torch.int64, "(N,) or (N, c)", (1, 2))
        named: dict[str, Images] = {"images": self.images, "labels": self.labels}
        optional = (
            ("condition", self.condition, torch.float32, "(N, Dz)", 2),
            ("bias", self.bias, torch.int64, "(N,)", 1),
            ("groupings", self.groupings, torch.int64, "(N, G)", 2),
        )
        for name, tensor, dtype, shape, dimensions in optional:
            if tensor is not None:
                _require(name, tensor, dtype, shape, (dimensions,))
                named[name] = tensor
        if len({len(tensor) for tensor in named.values()}) > 1:
            lengths = ", ".join(f"{len(tensor)} {name}" for name, tensor in named.items())
            raise WrongTensors(f"one row for each image is needed, got {lengths}")
        if len({tensor.device for tensor in named.values()}) > 1:
            devices = ", ".join(f"{name} on {tensor.device}" for name, tensor in named.items())
            raise WrongTensors(f"all tensors of a split live on one device, got {devices}")

    def __len__(self) -> int:
        return len(self.images)

    @property
    def pixels(self) -> Tensor:
        """The images as one tensor in memory; each access decodes all streamed images."""
        return self.images if isinstance(self.images, Tensor) else self.images.resident()

    def labelled(self) -> "LabelledImages":
        """Return the labelled images, which a probe needs; ``self`` if all images are labelled."""
        has_label = self.labels != UNLABELLED
        if self.labels.dim() == 2 or bool(has_label.all()):
            return self
        return self.subset(has_label.nonzero().flatten())

    def placed(
        self, placement: Placement = "auto", device: torch.device | str | None = None
    ) -> "LabelledImages":
        """Return the same images on ``device``, decoded into its memory or left on disk, see
        `data.streaming.place`; None leaves them on their device.

        Raises:
            ValueError: an unknown placement.
            DatasetDamaged: an image cannot be decoded.
        """
        there = self if device is None else self.to(device)
        return replace(there, images=place(there.images, placement))

    def subset(self, index: Tensor | Sequence[int]) -> "LabelledImages":
        """Return the rows of ``index`` (int64 ``(M,)``), in its order, as a copy; streamed images stay
        streamed.

        Raises:
            ValueError: ``index`` is not one-dimensional whole numbers, or names a missing row.
        """
        rows = checked_rows(index, len(self), self.images.device)
        images = self.images.subset(rows) if isinstance(self.images, StreamedImages) else self.images[rows]
        return self._mapped(images, lambda tensor: tensor[rows])

    def to(self, device: torch.device | str) -> "LabelledImages":
        """Return the same images on ``device``; tensors that are there already are shared."""
        return self._mapped(self.images.to(device), lambda tensor: tensor.to(device))

    def _mapped(self, images: Images, change: Callable[[Tensor], Tensor]) -> "LabelledImages":
        optional = (self.condition, self.bias, self.groupings)
        changed = (None if tensor is None else change(tensor) for tensor in optional)
        return LabelledImages(images, change(self.labels), *changed)


def checked_rows(index: Tensor | Sequence[int], size: int, device: torch.device) -> Tensor:
    """Return ``index`` as int64 ``(M,)`` on ``device``, after checking that it names rows of a set of
    ``size``.

    Raises:
        ValueError: it is not one-dimensional whole numbers, or names a missing row.
    """
    rows = torch.as_tensor(index)
    if rows.numel() == 0:
        rows = rows.long()
    if rows.dtype != torch.int64 or rows.dim() != 1:
        raise ValueError(f"index must be int64 (M,), got {rows.dtype} {tuple(rows.shape)}")
    if len(rows) and not bool(((rows >= 0) & (rows < size)).all()):
        raise ValueError(f"index must be in 0..{size - 1}, got {int(rows.min())}..{int(rows.max())}")
    return rows.to(device)


def _require(name: str, tensor: object, dtype: torch.dtype, shape: str, dimensions: tuple[int, ...]) -> None:
    if not isinstance(tensor, Tensor):
        raise WrongTensors(f"{name} must be a tensor, {dtype} {shape}, got {type(tensor).__name__}")
    if tensor.dtype != dtype or tensor.dim() not in dimensions:
        raise WrongTensors(f"{name} must be {dtype} {shape}, got {tensor.dtype} {tuple(tensor.shape)}")
