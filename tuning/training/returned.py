"""What the code of a method returns in training: refused with the method's name unless it can be used."""

from collections.abc import Mapping

import torch

from contrasweep.tuning.errors import WrongReturn
from contrasweep.tuning.methods.declaration import ALWAYS_REPORTED, Declaration
from contrasweep.tuning.objectives.objective import Objective, with_shape


def objective_of(method: Declaration, built: object) -> Objective:
    """Return what the `build` of a method returned.

    Raises:
        WrongReturn: it is no objective.
    """
    if isinstance(built, Objective):
        return built
    raise WrongReturn(f"build of {method.name} must return an Objective, returned {type(built).__name__}")


def refuse_unusable_step(method: Declaration, loss: object, metrics: Mapping[str, object]) -> None:
    """Check the loss and the metrics of a step.

    Raises:
        WrongReturn: the loss or a metric is no tensor of one number, or a metric is none of `train_metrics`.
    """
    for name, value in (("loss", loss), *metrics.items()):
        if not isinstance(value, torch.Tensor) or value.dim():
            what = "the loss" if value is loss else f"the metric {name}"
            raise WrongReturn(
                f"{what} of {method.name} must be a tensor with one number and no dimension, "
                f"is {with_shape(value)}"
            )
    refuse_undeclared(method, metrics)


def refuse_undeclared(method: Declaration, metrics: Mapping[str, object]) -> None:
    """Raise WrongReturn if a metric is none of its method's `train_metrics`: no study would record it."""
    declared = {*method.train_metrics, "dropped_fraction"}
    for name in metrics:
        if name in declared:
            continue
        own = ", ".join(method.train_metrics) or "none"
        taken = "every run reports another metric of this name: choose another name"
        raise WrongReturn(
            f"{method.name} reports the metric {name}: "
            + (taken if name in ALWAYS_REPORTED else f"its train_metrics do not name it (they name {own})")
        )


def of_epoch(method: Declaration, returned: object) -> dict[str, float]:
    """Return the metrics that `on_epoch_start` returned, as numbers.

    Raises:
        WrongReturn: it returned something else, or a metric that is none of `train_metrics`.
    """
    if not isinstance(returned, Mapping):
        raise WrongReturn(
            f"on_epoch_start of {method.name} must return its metrics by name, "
            f"returned {type(returned).__name__}"
        )
    refuse_undeclared(method, returned)
    numbers = {}
    for name, value in returned.items():
        try:
            numbers[name] = float(value)
        except (TypeError, ValueError, RuntimeError):
            kind = type(value).__name__
            raise WrongReturn(f"the metric {name} of {method.name} must be a number, is {kind}") from None
    return numbers
