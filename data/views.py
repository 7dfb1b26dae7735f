"""Random views of images, batched: every image has its own parameters, and there is no loop over images.

Parameters are drawn on the CPU for the whole (global) batch, so that all devices and any number of ranks
agree. A plan, made on the CPU too, has all that is needed to make the views of a rank's slice. It travels to
the device of the images in one copy (`data.packing`), and nothing that follows makes the host wait.

The order is the usual one of torchvision: crop, resize, shift and flip (`data.resample`), colour jitter
(`data.jitter`), greyscale, blur and normalisation (`data.photometric`). Operations that are off cost nothing.

Shapes: B images, C channels, H x W stored pixels, S the output size.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, from_numpy

from contrasweep.data.boxes import TRIES, crop_boxes
from contrasweep.data.jitter import OPERATIONS, GroupedJitter, StagedJitter, operations_on, orders, staged
from contrasweep.data.packing import to_device
from contrasweep.data.photometric import blur_, blur_kernels, grey_, normalise
from contrasweep.data.resample import (
    Interpolation,
    crop,
    crop_axes,
    images_at_once,
    require_images,
    require_interpolation,
)
from contrasweep.data.view_plan import PlannedViews, ViewParameters, ViewPlan, cut

# Standard deviations of the blur in pixels, the same in SimCLR (Chen et al. 2020, appendix A) and MoCo-v2.
_BLUR_SIGMA = (0.1, 2.0)
_SMALLEST_BLURRED = 20
_COLOURED_AT_ONCE = 256


@dataclass(frozen=True)
class RandomViews:
    """Random views with the distributions of torchvision's transforms; by default only crops and flips.

    For an image of one channel, saturation, hue and greyscale have no effect.

    Attributes:
        size: height and width of a view, in pixels.
        min_crop: smallest share of the image's area in a crop; 1 takes all of it, cut to an allowed aspect.
        max_crop: largest share.
        min_aspect: smallest width / height of a crop; its logarithm is drawn uniformly.
        max_aspect: largest width / height.
        flip: probability of mirroring.
        brightness: the factor is drawn from ``max(0, 1 - brightness)..1 + brightness``.
        contrast: the same for the contrast.
        saturation: the same for the saturation.
        hue: the shift is drawn from ``-hue..hue`` turns.
        jitter_probability: probability of changing brightness, contrast, saturation and hue.
        grayscale: probability of removing the colours.
        blur: probability of a Gaussian blur of standard deviation 0.1..2 pixels.
        interpolation: bilinear or bicubic, both antialiased.
        padding: the largest shift of the resized crop in pixels up, down, left and right, drawn uniformly;
            outside the crop the view is black. With `min_crop` 1, this is a random crop of the padded image.
        mean: mean of each channel, subtracted from views in 0..1; None leaves views in 0..1.
        std: standard deviation of each channel, the divisor.

    Raises:
        ValueError: a value is out of its range, or a smallest exceeds its largest.
    """

    size: int
    min_crop: float
    max_crop: float = 1.0
    min_aspect: float = 3 / 4
    max_aspect: float = 4 / 3
    flip: float = 0.5
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    hue: float = 0.0
    jitter_probability: float = 0.8
    grayscale: float = 0.0
    blur: float = 0.0
    interpolation: Interpolation = "bilinear"
    padding: int = 0
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"size must be at least 1 pixel, got {self.size}")
        if not 0.0 < self.min_crop <= self.max_crop <= 1.0:
            given = f"{self.min_crop} and {self.max_crop}"
            raise ValueError(f"crops need 0 < min_crop <= max_crop <= 1, got {given}")
        if not (0.0 < self.min_aspect <= self.max_aspect and math.isfinite(self.max_aspect)):
            given = f"{self.min_aspect} and {self.max_aspect}"
            raise ValueError(f"aspects need 0 < min_aspect <= max_aspect, got {given}")
        for name in ("flip", "jitter_probability", "grayscale", "blur"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must be a probability in 0..1, got {getattr(self, name)}")
        for name in OPERATIONS:
            highest = 0.5 if name == "hue" else math.inf
            strength = getattr(self, name)
            if not (0.0 <= strength <= highest and math.isfinite(strength)):
                allowed = "in 0..0.5" if name == "hue" else "finite and not negative"
                raise ValueError(f"{name} must be {allowed}, got {strength}")
        if self.blur and self.size < _SMALLEST_BLURRED:
            raise ValueError(
                f"blur needs a size of {_SMALLEST_BLURRED} pixels or more, as its kernel is a tenth of the "
                f"view, got {self.size}"
            )
        if not 0 <= self.padding < self.size:
            raise ValueError(f"padding must be in 0..size - 1, {self.size - 1} pixels, got {self.padding}")
        require_interpolation(self.interpolation)
        self._require_statistics()

    def draw(
        self, count: int, source_size: int | tuple[int, int], generator: torch.Generator
    ) -> ViewParameters:
        """Draw the parameters of ``count`` images, see `draw_all`."""
        return self.draw_all(count, source_size, [generator])

    def draw_all(
        self, count: int, source_size: int | tuple[int, int], generators: Sequence[torch.Generator]
    ) -> ViewParameters:
        """Draw the parameters of ``count`` images in several views, one view after the other.

        Each view has its own generator, and all are worked out together: that is less work for the CPU than
        one by one. The area and aspect of a crop are drawn up to ten times until the rounded box fits into
        the image; otherwise it is the largest central box of an allowed aspect. All tries are drawn at once,
        and also the parameters of operations that are off, so a generator advances equally for all settings.

        ``source_size`` is the stored height and width in pixels, one number for a square.

        Raises:
            ValueError: the count is negative, a side is below one pixel, or a generator is not the CPU's.
        """
        source = (source_size, source_size) if isinstance(source_size, int) else source_size
        if count < 0 or min(source) < 1:
            raise ValueError(f"count must not be negative and sides be positive, got {count} and {source}")
        for generator in generators:
            if generator.device.type != "cpu":
                raise ValueError(f"parameters are drawn by a CPU generator, got one on {generator.device}")
        chance, colour, place = _uniform(count, generators)
        areas, aspects = (self.min_crop, self.max_crop), (self.min_aspect, self.max_aspect)
        # Each draw's numbers side by side: NumPy is slow with rows of 12.
        colours = np.ascontiguousarray(colour.numpy().T)
        lowest, highest = self._factor_ranges
        return ViewParameters(
            boxes=crop_boxes(chance[:, :-1], source, areas, aspects),
            flip=from_numpy(chance.numpy()[:, -1] < self.flip).flatten(),
            shift=from_numpy((place.numpy() * (2 * self.padding + 1)).astype(np.int64) - self.padding),
            source_size=source,
            jitter=from_numpy(colours[8] < self.jitter_probability),
            factors=from_numpy(lowest + (highest - lowest) * colours[:4]).T,
            order=orders(colours[4:8]),
            grayscale=from_numpy(colours[9] < self.grayscale),
            blur=from_numpy(colours[10] < self.blur),
            sigma=from_numpy(_BLUR_SIGMA[0] + (_BLUR_SIGMA[1] - _BLUR_SIGMA[0]) * colours[11]),
        )

    def apply(self, images: Tensor, parameters: ViewParameters) -> Tensor:
        """Make one view of each image, uint8 ``(B, C, H, W)``, with its own parameters.

        There is one row of parameters for each image, drawn for ``(H, W)``, on the CPU. Returns float32
        ``(B, C, S, S)`` on the images' device, in 0..1 unless normalised.

        Raises:
            ValueError: the images are not uint8 ``(B, C, H, W)``, the parameters do not fit the images, or
                the settings do not fit the number of channels.
        """
        require_images(images)
        if len(parameters) != len(images) or parameters.source_size != tuple(images.shape[2:]):
            raise ValueError(
                f"the parameters are for {len(parameters)} images of {parameters.source_size} pixels, "
                f"got {len(images)} of {tuple(images.shape[2:])}"
            )
        plan = self.plan(parameters.to("cpu"), images.shape[1], images.device)
        return self.make(images, to_device(plan, images.device))

    def plan(
        self,
        parameters: ViewParameters,
        channels: int,
        device: torch.device,
        first: Sequence[int] = (0,),
    ) -> ViewPlan:
        """Return how to make several views of images; `data.packing.to_device` takes the plan to the device.

        ``parameters`` has the parameters of the images, one view after the other, on the CPU. View v shows
        the images from row ``first[v]`` on; by default there is one view, from the first image on.

        Raises:
            ValueError: the settings do not fit the number of channels.
        """
        if (self._jitters or self.grayscale) and channels not in (1, 3):
            raise ValueError(f"colours change in images of 1 or 3 channels, got {channels}")
        stored = (channels, *parameters.source_size)
        step = images_at_once(device, stored, self.size, like=_COLOURED_AT_ONCE)
        on_cpu = device.type == "cpu"
        parts = cut(parameters, first, step, in_order=on_cpu)
        planned = (self._planned(shown, drawn, channels, grouped=on_cpu) for shown, drawn in parts)
        return ViewPlan(stored, tuple(planned))

    def make(self, images: Tensor, plan: ViewPlan) -> Tensor:
        """Make the views of a plan, which is on the images' device, of images, uint8 ``(N, C, H, W)``.

        Returns float32 ``(B, C, S, S)``, the views one after the other, in 0..1 unless normalised.

        Raises:
            ValueError: the images are not uint8, or of another shape than in the plan.
        """
        require_images(images)
        if tuple(images.shape[1:]) != plan.stored:
            raise ValueError(f"the plan is for images {plan.stored}, got {tuple(images.shape[1:])}")
        made = [self._made(images[part.shown], part) for part in plan.parts]
        return made[0] if len(made) == 1 else torch.cat(made)

    @property
    def _jitters(self) -> list[str]:
        """The operations of the jitter that are on."""
        return [name for name in OPERATIONS if getattr(self, name) > 0.0]

    def _planned(
        self, shown: Tensor | slice, drawn: ViewParameters, channels: int, *, grouped: bool
    ) -> PlannedViews:
        boxes, flip, shift = drawn.boxes, drawn.flip, drawn.shift if self.padding else None
        grey = drawn.grayscale.nonzero()[:, 0] if self.grayscale else None
        blurred = drawn.blur.nonzero()[:, 0] if self.blur else None
        kernels = None if blurred is None else blur_kernels(drawn.sigma[blurred], self.size)
        colours: GroupedJitter | StagedJitter | None = None
        back = None
        active = operations_on(self._jitters, channels)
        if active and grouped:
            colours = GroupedJitter(active, drawn.jitter, drawn.factors, drawn.order)
        elif active:
            by, colours = staged(active, drawn.jitter, drawn.factors, drawn.order)
            back = torch.empty_like(by).scatter_(0, by, torch.arange(len(by)))
            # Only what a view still needs is put into the new order, or points to the new places.
            assert isinstance(shown, Tensor)
            shown, flip, boxes = shown.index_select(0, by), flip.index_select(0, by), _sorted(boxes, by)
            shift = None if shift is None else _sorted(shift, by)
            grey, blurred = (None if rows is None else back.index_select(0, rows) for rows in (grey, blurred))
        axes = crop_axes(boxes, flip, self.size, shift)
        return PlannedViews(shown, axes, colours, grey, blurred, kernels, back)

    def _made(self, images: Tensor, part: PlannedViews) -> Tensor:
        views = crop(images, part.axes, self.size, self.interpolation)
        if part.colours is not None:
            views = part.colours.apply(views)
        if part.grey is not None:
            grey_(views, part.grey)
        if part.blurred is not None and part.kernels is not None:
            blur_(views, part.blurred, part.kernels)
        if self.mean is not None and self.std is not None:
            views = normalise(views, self.mean, self.std)
        return views if part.back is None else views.index_select(0, part.back)

    @cached_property
    def _factor_ranges(self) -> NDArray[np.float32]:
        """Return the lowest and the highest of the four factors, ``(2, 4, 1)``."""
        multipliers = (self.brightness, self.contrast, self.saturation)
        lowest = [*(max(0.0, 1.0 - strength) for strength in multipliers), -self.hue]
        highest = [*(1.0 + strength for strength in multipliers), self.hue]
        return np.array([lowest, highest], np.float32)[:, :, None]

    def _require_statistics(self) -> None:
        if self.mean is None and self.std is None:
            return
        if self.mean is None or self.std is None or len(self.mean) != len(self.std):
            given = f"{self.mean} and {self.std}"
            raise ValueError(f"mean and std need one number for each channel or neither, got {given}")
        if not all(math.isfinite(value) for value in self.mean):
            raise ValueError(f"mean must be finite, got {self.mean}")
        if not all(0.0 < value < math.inf for value in self.std):
            raise ValueError(f"std must be above 0, got {self.std}")


def _uniform(count: int, generators: Sequence[torch.Generator]) -> tuple[Tensor, Tensor, Tensor]:
    """Return uniform draws in [0, 1), V views by their generators, in an order that must not change.

    The first, float64 ``(V, 2 * tries + 3, count)``, are for crops and flips; the next, float32
    ``(V * count, 12)``, for colours and blur; the last, float64 ``(V * count, 2)``, for shifts.
    """
    views = len(generators)
    chance = torch.empty((views, 2 * TRIES + 3, count), dtype=torch.float64)
    colour = torch.empty((views, count, 12))
    # Drawn last, so that the draws above are the same as in versions without shifts.
    place = torch.empty((views, count, 2), dtype=torch.float64)
    for generator, *parts in zip(generators, chance, colour, place, strict=True):
        for part in parts:
            part.uniform_(generator=generator)
    return chance, colour.flatten(0, 1), place.flatten(0, 1)


def _sorted(rows: Tensor, by: Tensor) -> Tensor:
    """Return ``rows[by]``; torch is slow if the rows are not contiguous."""
    return from_numpy(rows.numpy().T.take(by.numpy(), axis=1)).T
