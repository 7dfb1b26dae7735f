"""Colour jitter of a batch of views: each has its own factors and its own order of operations.

The formulas are those of torchvision for float images, so equal parameters give equal views. Two ways lead to
the same views. On a CPU, `GroupedJitter` runs each operation only on the views whose turn it is. On an
accelerator, its hundreds of calls would each be too short to fill the device; `StagedJitter` needs few.

Shapes: B views, n of them with other colours, C channels (1 or 3), S the height and width.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from contrasweep.data.photometric import BLUE, GREEN, RED, luma_of

OPERATIONS = ("brightness", "contrast", "saturation", "hue")
_CONTRAST, _SATURATION, _HUE = range(1, 4)

# The places of red, green and blue on the hexagon of hues.
_CORNERS = np.array((-2.0, 0.0, 2.0), np.float32)
_TINY = 1e-20


def operations_on(names: Sequence[str], channels: int) -> tuple[int, ...]:
    """Return the operations in ``names``, as indices into `OPERATIONS`, without those that change nothing.

    Views of 1 channel have no saturation or hue.
    """
    possible = OPERATIONS if channels == 3 else OPERATIONS[:_SATURATION]
    return tuple(index for index, name in enumerate(possible) if name in names)


def orders(chance: NDArray[np.float32]) -> Tensor:
    """Return orders, int64 ``(B, 4)``: the places of four draws ``(4, B)`` from the smallest to the largest.

    The earlier one of two equal draws comes first. Six comparisons take less time than sorting.
    """
    later = chance.take(_ONE, axis=0) > chance.take(_OTHER, axis=0)
    return torch.from_numpy(_ORDERS.take(_BITS @ later, axis=0))


def _orders_by_comparisons() -> NDArray[np.int64]:
    """Return the order ``(4,)`` for each result of the comparisons of `orders`, a number by its bits."""
    table = np.zeros((2 ** len(_BITS), len(OPERATIONS)), np.int64)
    every = np.array(list(permutations(range(len(OPERATIONS)))))
    place = every.argsort(axis=1).T
    table[_BITS @ (place[_ONE] > place[_OTHER])] = every
    return table


_ONE, _OTHER = np.array(list(combinations(range(len(OPERATIONS)), 2))).T
_BITS = 2 ** np.arange(len(_ONE), dtype=np.uint8)
_ORDERS = _orders_by_comparisons()


@dataclass(frozen=True, eq=False)
class GroupedJitter:
    """Four turns: each groups the views by their operation in this turn, which runs on its whole group.

    Attributes:
        active: the operations that are on (indices into `OPERATIONS`); the others are skipped.
        chosen: bool ``(B,)``, the views that change.
        factors: float32 ``(B, 4)``, columns as in `OPERATIONS`: multipliers >= 0 (1 changes nothing), and the
            shift of the hue in turns, -0.5..0.5.
        order: int64 ``(B, 4)``, the operation of each turn.
    """

    active: tuple[int, ...]
    chosen: Tensor
    factors: Tensor
    order: Tensor

    def apply(self, views: Tensor) -> Tensor:
        """Return the views, float32 ``(B, C, S, S)`` in 0..1 on the CPU, in other colours."""
        # A fifth group holds the views that keep their colours.
        order, factors = self.order.where(self.chosen[:, None], len(OPERATIONS)), self.factors
        rows = torch.arange(len(views))
        for turn in range(len(OPERATIONS)):
            by = order[:, turn].argsort(stable=True)
            order, factors, rows = order[by], factors[by], rows[by]
            views = views.index_select(0, by)
            sizes = torch.bincount(order[:, turn], minlength=len(OPERATIONS) + 1).tolist()
            values = factors[:, :, None, None, None]
            groups = zip(torch.split(views, sizes), torch.split(values, sizes), strict=True)
            for index, (group, value) in enumerate(groups):
                if index in self.active and len(group):
                    _ADJUST[index](group, value[:, index])
        return views.index_select(0, rows.argsort())


@dataclass(frozen=True, eq=False)
class StagedJitter:
    """The same colours in few calls: all hues turn together, with up to three blends before and three after.

    Brightness, contrast and saturation have one form, a blend: the view times a factor, plus a share of its
    luma, plus a share of the mean of its luma. A view's blends in their order are its stages; some come
    before its turn of the hue, the rest after it. The views are sorted by the number of stages before, most
    first, and unchanged views are last. So a call runs on neighbours: the first views, or the last changed.

    Attributes:
        changed: the number of changed views.
        before: of each stage, the number of views for which it comes before the hue.
        blends: float32 ``(stages, 3, changed)``, of each stage and view: the factor, the share of the luma,
            and that of its mean; luma here is divided by the weight of red.
        turns: float32 ``(changed, 3)``, see `_turn_hue_`; None where the hue is off.
    """

    changed: int
    before: tuple[int, ...]
    blends: Tensor
    turns: Tensor | None

    def apply(self, views: Tensor) -> Tensor:
        """Return the views, float32 ``(B, C, S, S)`` in 0..1, sorted as above, in other colours, in place."""
        for weights, end in zip(self.blends, self.before, strict=True):
            _blend_(views[:end], weights[:, :end])
        if self.turns is not None and self.changed:
            _turn_hue_(views[: self.changed], self.turns)
        for weights, start in zip(self.blends, self.before, strict=True):
            _blend_(views[start : self.changed], weights[:, start:])
        return views


def staged(
    active: tuple[int, ...], chosen: Tensor, factors: Tensor, order: Tensor
) -> tuple[Tensor, StagedJitter]:
    """Return the order of views that a `StagedJitter` needs, int64 ``(B,)``, and the jitter, all on the CPU.

    The arguments are those of `GroupedJitter`.
    """
    weights, table = _stages_of_orders(active)
    found = table.take(order.numpy() @ weights, axis=1)
    # Of unchanged views it is below 0. Bytes are sorted in linear time.
    before = np.where(chosen.numpy(), found[0], -1)
    by = (-before).astype(np.int8).argsort(kind="stable")
    sizes = np.bincount(before + 1, minlength=len(table) + 1).tolist()
    changed, *ends = (sum(sizes[least:]) for least in range(1, len(sizes)))
    kept = by[:changed]
    # The blends of each view in their order: `stages` (stages, changed).
    stages = found.take(kept, axis=1)[1:]
    own = factors.numpy().T.take(kept, axis=1)
    blends = np.empty((len(stages), 3, changed), np.float32)
    factor = own.take(stages * changed + np.arange(changed))
    rest = RED * (1.0 - factor)
    blends[:, 0] = factor
    np.multiply(rest, stages == _SATURATION, out=blends[:, 1])
    np.multiply(rest, stages == _CONTRAST, out=blends[:, 2])
    turns = _hue_turns(torch.from_numpy(own[_HUE])) if _HUE in active else None
    return torch.from_numpy(by), StagedJitter(changed, tuple(ends), torch.from_numpy(blends), turns)


@lru_cache
def _stages_of_orders(active: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return what the orders mean for the operations that are on: weights ``(4,)`` and a table.

    An order ``(4,)`` times the weights is its column in the table, which has the number of blends before the
    hue (all of them if the hue is off), and then the blends in their order.
    """
    weights = len(OPERATIONS) ** np.arange(len(OPERATIONS))
    blends = [index for index in active if index != _HUE]
    table = np.zeros((1 + len(blends), len(OPERATIONS) ** len(OPERATIONS)), np.int64)
    for order in permutations(range(len(OPERATIONS))):
        ahead = order[: order.index(_HUE)] if _HUE in active else order
        row = [sum(index in blends for index in ahead), *(index for index in order if index in blends)]
        table[:, np.array(order) @ weights] = row
    return weights, table


def _blend_(views: Tensor, weights: Tensor) -> None:
    """Blend each view by its weights ``(3, n)``, see `StagedJitter`, in place."""
    if not len(views):
        return
    factor, of_luma, of_mean = weights[:, :, None, None, None].unbind(0)
    if views.shape[1] == 3:
        red, green, blue = torch.split(views, 1, dim=1)
        luma = torch.add(red, green, alpha=GREEN / RED).add_(blue, alpha=BLUE / RED)
    else:
        luma = views / RED
    mean = luma.mean(dim=(2, 3), keepdim=True)
    added = torch.addcmul(mean.mul_(of_mean), luma, of_luma)
    torch.addcmul(added, views, factor, out=views).clamp_(0.0, 1.0)


def _adjust_brightness_(views: Tensor, factor: Tensor) -> None:
    views.mul_(factor).clamp_(0.0, 1.0)


def _adjust_contrast_(views: Tensor, factor: Tensor) -> None:
    """Blend each view with the mean of its luma."""
    mean = views.mean(dim=(2, 3), keepdim=True)
    if views.shape[1] == 3:
        mean = luma_of(mean)
    views.mul_(factor).add_((1.0 - factor).mul_(mean)).clamp_(0.0, 1.0)


def _adjust_saturation_(views: Tensor, factor: Tensor) -> None:
    """Blend each view with its luma."""
    luma = luma_of(views).mul_(1.0 - factor)
    views.mul_(factor).add_(luma).clamp_(0.0, 1.0)


def _adjust_hue_(views: Tensor, shift: Tensor) -> None:
    _turn_hue_(views, _hue_turns(shift.flatten()))


def _hue_turns(shift: Tensor) -> Tensor:
    """Return the turns ``(n, 3)`` of `_turn_hue_` for shifts of the hue ``(n,)`` in turns, -0.5..0.5."""
    # The difference to each channel's corner, in -6..6, becomes 3 - distance.
    beyond = 6.0 * shift.numpy()[:, None] - _CORNERS + 3.0
    # The remainder of a division by 6, to the last bit, but faster: `beyond` is in -6..12.
    return torch.from_numpy(beyond - 6.0 * np.floor(beyond / 6.0) - 3.0)


def _turn_hue_(views: Tensor, turns: Tensor) -> None:
    """Turn the hue at constant value (largest channel) and chroma (largest minus smallest), in place.

    Hues lie on a hexagon of six unit sides, green at 0, blue at 2, red at -2. A channel is the smallest one
    plus the chroma times ``min(max(2 - distance, 0), 1)``, with the distance to its own corner. The hue is
    ``(largest - 2 smallest + red + blue - green) / chroma``, negative where red exceeds blue. This form does
    not need to know which channel is the largest.
    """
    red, green, blue = views.unbind(1)
    largest, smallest = views.amax(dim=1), views.amin(dim=1)
    hue = (largest + red).add_(blue).sub_(green).sub_(smallest, alpha=2.0)
    chroma = largest.sub_(smallest)
    # A grey pixel has no hue. Any finite value works, because its chroma of 0 removes it below.
    hue.div_(chroma + _TINY).copysign_(blue - red)
    closeness = (hue[:, None] + turns[:, :, None, None]).abs_().sub_(3.0).abs_().clamp_(1.0, 2.0)
    torch.addcmul(smallest.sub_(chroma)[:, None], closeness, chroma[:, None], out=views)


_ADJUST: tuple[Callable[[Tensor, Tensor], None], ...] = (
    _adjust_brightness_,
    _adjust_contrast_,
    _adjust_saturation_,
    _adjust_hue_,
)
