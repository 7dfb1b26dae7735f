"""Losses without negatives, each with its reference, for the test of all equations."""

from collections.abc import Callable
from functools import partial

import references_predicting
from drawn import Drawn, Pair
from torch import Tensor, nn

from contrasweep import losses


def barlow_twins(d: Drawn) -> Pair:
    views = d.normal(2, d.B + 1, d.D)
    return losses.BarlowTwins(0.3), lambda v: references_predicting.barlow_twins(v, 0.3), views


def vicreg(d: Drawn, form: str) -> Pair:
    weights = (0.7, 1.3, 0.4)
    views = d.normal(2, d.B + 1, d.D)
    return losses.VICReg(*weights, form), lambda v: references_predicting.vicreg(v, weights, form), views


def predicted(d: Drawn, module: nn.Module, reference: Callable[[Tensor, Tensor], Tensor]) -> Pair:
    targets = d.views(2)
    return lambda p: module(p, targets), lambda p: reference(p, targets), d.views(2)


def dino(d: Drawn) -> Pair:
    teacher, centre, module = d.views(2), d.normal(d.D), losses.DINO(0.4, 0.6)
    return (
        lambda s: module(s, teacher, centre),
        lambda s: references_predicting.dino(s, teacher, centre, 0.4, 0.6),
        d.normal(1 + d.V, d.B, d.D) if d.V > 1 else d.views(2),
    )


PREDICTING: dict[str, Callable[[Drawn], Pair]] = {
    "barlow-twins": barlow_twins,
    **{f"vicreg-{form}": partial(vicreg, form=form) for form in ("released", "paper")},
    "dino": dino,
    "byol": partial(predicted, module=losses.BYOL(), reference=references_predicting.byol),
    "simsiam": partial(predicted, module=losses.SimSiam(), reference=references_predicting.simsiam),
}
