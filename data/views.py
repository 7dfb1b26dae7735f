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

import torch
from torch import Tensor

from contrasweep.data.jitter import OPERATIONS, GroupedJitter, StagedJitter, operations_on, staged
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

_TRIES = 10
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
        """Draw the parameters of ``count`` images.

        The area and aspect of a crop are drawn up to ten times until the rounded box fits into the image;
        otherwise it is the largest central box of an allowed aspect. All tries are drawn at once, and also
        the parameters of operations that are off, so the generator advances equally for all settings.

        ``source_size`` is the stored height and width in pixels, one number for a square.

        Raises:
            ValueError: the count is negative, a side is below one pixel, or the generator is not the CPU's.
        """
        source = (source_size, source_size) if isinstance(source_size, int) else source_size
        if count < 0 or min(source) < 1:
            raise ValueError(f"count must not be negative and sides be positive, got {count} and {source}")
        if generator.device.type != "cpu":
            raise ValueError(f"parameters are drawn by a CPU generator, got one on {generator.device}")
        chance = torch.rand((2 * _TRIES + 3, count), generator=generator, dtype=torch.float64)
        colour = torch.rand((count, 12), generator=generator)
        # Drawn last, so that the draws above are the same as in versions without shifts.
        place = torch.rand((count, 2), generator=generator, dtype=torch.float64)
        lowest, highest = self._factor_ranges()
        jitter, grayscale, blur, sigma = colour[:, 8:].unbind(1)
        return ViewParameters(
            boxes=self._boxes(chance[:-1], source),
            flip=chance[-1] < self.flip,
            shift=(place * (2 * self.padding + 1)).long() - self.padding,
            source_size=source,
            jitter=jitter < self.jitter_probability,
            factors=lowest + (highest - lowest) * colour[:, :4],
            order=colour[:, 4:8].argsort(dim=1),
            grayscale=grayscale < self.grayscale,
            blur=blur < self.blur,
            sigma=_BLUR_SIGMA[0] + (_BLUR_SIGMA[1] - _BLUR_SIGMA[0]) * sigma,
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
        plan = self.plan([parameters.to("cpu")], images.shape[1], images.device)
        return self.make(images, to_device(plan, images.device))

    def plan(
        self,
        parameters: Sequence[ViewParameters],
        channels: int,
        device: torch.device,
        first: Sequence[int] | None = None,
    ) -> ViewPlan:
        """Return how to make several views of images; `data.packing.to_device` takes the plan to the device.

        ``parameters`` has the parameters of the images in each view, on the CPU; all were drawn for one size.
        View v shows the images from row ``first[v]`` on, by default from the first one.

        Raises:
            ValueError: the settings do not fit the number of channels.
        """
        if (self._jitters or self.grayscale) and channels not in (1, 3):
            raise ValueError(f"colours change in images of 1 or 3 channels, got {channels}")
        stored = (channels, *parameters[0].source_size)
        step = images_at_once(device, stored, self.size, like=_COLOURED_AT_ONCE)
        on_cpu = device.type == "cpu"
        parts = cut(parameters, first or [0] * len(parameters), step, in_order=on_cpu)
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
        colours: GroupedJitter | StagedJitter | None = None
        back = None
        active = operations_on(self._jitters, channels)
        if active and grouped:
            colours = GroupedJitter(active, drawn.jitter, drawn.factors, drawn.order)
        elif active:
            by, colours = staged(active, drawn.jitter, drawn.factors, drawn.order)
            assert isinstance(shown, Tensor)
            shown, drawn, back = shown[by], drawn[by], by.argsort()
        shift = drawn.shift if self.padding else None
        blurred = drawn.blur.nonzero()[:, 0] if self.blur else None
        return PlannedViews(
            shown,
            crop_axes(drawn.boxes, drawn.flip, self.size, shift),
            colours,
            grey=drawn.grayscale.nonzero()[:, 0] if self.grayscale else None,
            blurred=blurred,
            kernels=None if blurred is None else blur_kernels(drawn.sigma[blurred], self.size),
            back=back,
        )

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

    def _factor_ranges(self) -> tuple[Tensor, Tensor]:
        """Return the lowest and the highest of the four factors, each ``(4,)``."""
        multipliers = (self.brightness, self.contrast, self.saturation)
        lowest = [*(max(0.0, 1.0 - strength) for strength in multipliers), -self.hue]
        highest = [*(1.0 + strength for strength in multipliers), self.hue]
        return torch.tensor(lowest), torch.tensor(highest)

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

    def _boxes(self, chance: Tensor, source: tuple[int, int]) -> Tensor:
        """Turn uniform draws, ``(2 * tries + 2, count)`` in [0, 1), into crop boxes ``(count, 4)``."""
        if self.min_crop == 1.0:
            # Drawn boxes could lose a row or column to rounding.
            return torch.tensor(self._central_box(source)).repeat(chance.shape[1], 1)
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
        """Return the largest central box of an allowed aspect."""
        height, width = source
        if width / height < self.min_aspect:
            height = max(1, round(width / self.min_aspect))
        elif width / height > self.max_aspect:
            width = max(1, round(height * self.max_aspect))
        return (source[0] - height) // 2, (source[1] - width) // 2, height, width
