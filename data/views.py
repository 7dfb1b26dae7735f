"""Random views of images, batched: every sample has its own crop and flip, and there is no loop over images.

Drawing and applying are apart. Parameters are drawn on the CPU for the whole (global) batch, so that every
device and any number of ranks agree; a rank slices its part and applies it where its images are.

Crop, resize and flip are two matrix products per image, ``rows @ image @ columns^T``: an interpolation matrix
``(size, H)`` holds the weights of the crop's pixel rows for each output row, another those of its columns,
and a flip reverses the columns' matrix. Where a crop is larger than the output the weights widen
(antialiasing).

Shapes: B images, C channels, H x W stored pixels, S the output size.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

_TRIES = 10


@dataclass(frozen=True, eq=False)
class ViewParameters:
    """One crop box and one flip for each sample.

    Attributes:
        boxes: int64 ``(B, 4)``: top, left, height, width in stored pixels.
        flip: bool ``(B,)``: mirrored left to right.
        source_size: stored (height, width) that the boxes were drawn for.
    """

    boxes: Tensor
    flip: Tensor
    source_size: tuple[int, int]

    def __len__(self) -> int:
        return len(self.boxes)

    def __getitem__(self, index: slice | Tensor) -> "ViewParameters":
        """Return the parameters of some samples, such as one rank's slice of the global batch."""
        return ViewParameters(self.boxes[index], self.flip[index], self.source_size)

    def to(self, device: torch.device | str) -> "ViewParameters":
        """Return the same parameters on ``device``."""
        return ViewParameters(self.boxes.to(device), self.flip.to(device), self.source_size)


@dataclass(frozen=True)
class RandomViews:
    """Random resized crop and horizontal flip, by the distribution of torchvision's RandomResizedCrop.

    Attributes:
        size: height and width of a view, in pixels.
        min_crop: smallest share of the image's area that a crop covers.
        max_crop: largest share.
        min_aspect: smallest width / height of a crop; the logarithm is drawn evenly.
        max_aspect: largest width / height.
        flip: probability of mirroring.

    Raises:
        ValueError: a value is out of its range, or a smallest exceeds its largest.
    """

    size: int
    min_crop: float
    max_crop: float = 1.0
    min_aspect: float = 3 / 4
    max_aspect: float = 4 / 3
    flip: float = 0.5

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"size must be at least 1 pixel, got {self.size}")
        if not 0.0 < self.min_crop <= self.max_crop <= 1.0:
            raise ValueError(
                f"crops need 0 < min_crop <= max_crop <= 1, got {self.min_crop} and {self.max_crop}"
            )
        if not (0.0 < self.min_aspect <= self.max_aspect and math.isfinite(self.max_aspect)):
            raise ValueError(
                f"aspects need 0 < min_aspect <= max_aspect, got {self.min_aspect} and {self.max_aspect}"
            )
        if not 0.0 <= self.flip <= 1.0:
            raise ValueError(f"flip must be a probability in 0..1, got {self.flip}")

    def draw(
        self, count: int, source_size: int | tuple[int, int], generator: torch.Generator
    ) -> ViewParameters:
        """Draw the parameters of ``count`` samples.

        A crop's area and aspect are drawn up to ten times until the rounded box fits into the image; after
        that the largest central box of an allowed aspect is taken. All tries are drawn at once, so the
        generator advances by the same amount whatever it draws.

        Args:
            count: number of samples.
            source_size: stored height and width in pixels, one number for a square.
            generator: a CPU generator.

        Raises:
            ValueError: the count is negative, a side is below one pixel, or the generator is not the CPU's.
        """
        source = (source_size, source_size) if isinstance(source_size, int) else source_size
        if count < 0 or min(source) < 1:
            raise ValueError(f"count must not be negative and sides be positive, got {count} and {source}")
        if generator.device.type != "cpu":
            raise ValueError(f"parameters are drawn by a CPU generator, got one on {generator.device}")
        chance = torch.rand((2 * _TRIES + 3, count), generator=generator, dtype=torch.float64)
        boxes = self._boxes(chance[:-1], source)
        return ViewParameters(boxes, chance[-1] < self.flip, source)

    def apply(self, images: Tensor, parameters: ViewParameters) -> Tensor:
        """Crop, resize (bilinear, antialiased) and flip each image by its own parameters.

        Args:
            images: uint8 ``(B, C, H, W)``, any device.
            parameters: one row for each image, drawn for ``(H, W)``.

        Returns:
            float32 ``(B, C, S, S)`` in 0..1 on the images' device.

        Raises:
            ValueError: the images are not uint8 ``(B, C, H, W)``, or the parameters belong to others.
        """
        _require_images(images)
        if len(parameters) != len(images) or parameters.source_size != tuple(images.shape[2:]):
            raise ValueError(
                f"the parameters are for {len(parameters)} images of {parameters.source_size} pixels, "
                f"got {len(images)} of {tuple(images.shape[2:])}"
            )
        here = parameters.to(images.device)
        top, left, height, width = here.boxes.unbind(1)
        rows = _interpolation(top, height, self.size, images.shape[2])
        columns = _interpolation(left, width, self.size, images.shape[3], here.flip)
        return _resample(images, rows, columns)

    def _boxes(self, chance: Tensor, source: tuple[int, int]) -> Tensor:
        """Turn even draws, ``(2 * tries + 2, count)`` in [0, 1), into crop boxes ``(count, 4)``."""
        area, shape = chance[:_TRIES], chance[_TRIES : 2 * _TRIES]
        area = source[0] * source[1] * (self.min_crop + (self.max_crop - self.min_crop) * area)
        lowest, highest = math.log(self.min_aspect), math.log(self.max_aspect)
        aspect = torch.exp(lowest + (highest - lowest) * shape)
        heights, widths = (area / aspect).sqrt().round(), (area * aspect).sqrt().round()
        fits = (heights >= 1) & (heights <= source[0]) & (widths >= 1) & (widths <= source[1])
        first = fits.int().argmax(dim=0, keepdim=True)
        height, width = heights.gather(0, first)[0], widths.gather(0, first)[0]
        top = (chance[-2] * (source[0] - height + 1)).floor()
        left = (chance[-1] * (source[1] - width + 1)).floor()
        drawn = torch.stack((top, left, height, width), dim=1).long()
        return torch.where(fits.any(dim=0)[:, None], drawn, torch.tensor(self._central_box(source)))

    def _central_box(self, source: tuple[int, int]) -> tuple[int, int, int, int]:
        """Return the largest box around the centre whose aspect is allowed."""
        height, width = source
        if width / height < self.min_aspect:
            height = max(1, round(width / self.min_aspect))
        elif width / height > self.max_aspect:
            width = max(1, round(height * self.max_aspect))
        return (source[0] - height) // 2, (source[1] - width) // 2, height, width


def whole_image(images: Tensor, size: int) -> Tensor:
    """Resize whole images for evaluation, bilinear and antialiased.

    Args:
        images: uint8 ``(N, C, H, W)``, any device.
        size: output height and width S in pixels.

    Returns:
        float32 ``(N, C, S, S)`` in 0..1 on the images' device.

    Raises:
        ValueError: the images are not uint8 ``(N, C, H, W)``, or the size is below 1.
    """
    _require_images(images)
    if size < 1:
        raise ValueError(f"size must be at least 1 pixel, got {size}")
    height, width = images.shape[2:]
    if height == width == size:
        return images.float() / 255.0
    start = torch.zeros(1, dtype=torch.int64, device=images.device)
    rows = _interpolation(start, start + height, size, height)
    columns = _interpolation(start, start + width, size, width)
    return _resample(images, rows.expand(len(images), -1, -1), columns.expand(len(images), -1, -1))


def _interpolation(
    start: Tensor, length: Tensor, size: int, source: int, flip: Tensor | None = None
) -> Tensor:
    """Return the weights ``(B, size, source)`` that resize ``length`` pixels from ``start`` to ``size``.

    A triangle around each output pixel's centre, cut off at the crop's border and normalised to sum 1, which
    for enlarging is the usual bilinear rule with the border repeated.
    """
    output = torch.arange(size, device=start.device).expand(len(start), size)
    if flip is not None:
        output = torch.where(flip[:, None], size - 1 - output, output)
    first, count = start[:, None].float(), length[:, None].float()
    scale = count / size
    centre = first + (output + 0.5) * scale
    pixel = torch.arange(source, device=start.device) + 0.5
    weights = (
        (pixel - centre[..., None])
        .abs_()
        .div_(scale.clamp(min=1.0)[..., None])
        .neg_()
        .add_(1.0)
        .clamp_(min=0.0)
    )
    weights *= ((pixel > first) & (pixel < first + count))[:, None]
    return weights.div_(weights.sum(dim=-1, keepdim=True))


def _resample(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Return ``rows @ image @ columns^T / 255`` for each image and channel, ``(B, C, S, S)``."""
    count, channels, height, width = images.shape
    size = rows.shape[1]
    wide = torch.bmm(images.float().view(count, channels * height, width), columns.transpose(1, 2) / 255.0)
    # Repeating the small matrices is five times faster on a CPU than a product that broadcasts over channels.
    repeated = rows.repeat_interleave(channels, dim=0)
    return torch.bmm(repeated, wide.view(count * channels, height, size)).view(count, channels, size, size)


def _require_images(images: Tensor) -> None:
    if images.dtype != torch.uint8 or images.dim() != 4:
        raise ValueError(f"images must be uint8 (B, C, H, W), got {images.dtype} {tuple(images.shape)}")
