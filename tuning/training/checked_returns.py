"""Checks of what a method returns in training: an unusable value is refused, with the method named."""

from collections.abc import Mapping

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from contrasweep.models import NonFiniteFeatures
from contrasweep.tuning.errors import WrongReturn
from contrasweep.tuning.methods.declaration import ALWAYS_REPORTED, Declaration
from contrasweep.tuning.objectives.objective import Objective, with_shape


def objective_of(method: Declaration, built: object) -> Objective:
    """Return what the `build` of a method returned.

    Raises:
        WrongReturn: it is no objective, or predicts no classes where the method says that it does.
    """
    if isinstance(built, Objective):
        if method.classifies and type(built).predict is Objective.predict:
            raise WrongReturn(f"{method.name} has classifies=True, but its {type(built).__name__} no predict")
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


def _tensors(objective: nn.Module) -> dict[str, torch.Tensor]:
    """Return the tensors of a module's state; those of a lazy layer have no shape before its first call."""
    state = objective.state_dict().items()
    return {name: one for name, one in state if isinstance(one, torch.Tensor) and not is_lazy(one)}


def shapes_of_state(objective: nn.Module) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor in a module's state, by its name."""
    return {name: tuple(value.shape) for name, value in _tensors(objective).items()}


def refuse_changed_state(
    method: Declaration, before: Mapping[str, tuple[int, ...]], after: Mapping[str, tuple[int, ...]]
) -> None:
    """Check the shapes of a method's state before and after an epoch.

    Raises:
        WrongReturn: a tensor was made, lost or resized, so that no checkpoint of the run could be loaded.
    """
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    if changed:
        name = changed[0]
        told = " and ".join(
            "absent" if name not in shapes else f"of shape {shapes[name]}" for shapes in (before, after)
        )
        raise WrongReturn(
            f"{method.name}: {name} is {told} before and after an epoch, so that a checkpoint may not be "
            "loaded: make it in __init__, with its final shape"
        )


def finite_tensors(objective: nn.Module) -> list[str]:
    """Return the names of the tensors in a module's state that hold neither NaN nor Inf.

    The host waits for an accelerator once, whatever their number.
    """
    state = _tensors(objective)
    sound = torch.stack([torch.isfinite(value).all() for value in state.values()]).tolist()
    return [name for name, is_sound in zip(state, sound, strict=True) if is_sound]


def refuse_unusable_scores(objective: Objective, outputs: torch.Tensor, rows: int, classes: int) -> None:
    """Check what the `predict` of an objective returned for so many objects.

    Raises:
        WrongReturn: it is no score for each object and class.
        NonFiniteFeatures: a score is NaN.
    """
    if outputs.shape != (rows, classes):
        raise WrongReturn(
            f"predict of {type(objective).__name__} must return scores ({rows}, {classes}), one for each "
            f"object and class, returned {with_shape(outputs)}"
        )
    if bool(torch.isnan(outputs).any()):
        raise NonFiniteFeatures(f"the scores of predict of {type(objective).__name__} hold NaN")
