"""`loss_method` makes a `Method` of one `nn.Module` whose `forward` takes the projected views."""

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from contrasweep.losses.terms import LossTerms
from contrasweep.models import Encoder
from contrasweep.names import check_arguments
from contrasweep.search_spaces import Space
from contrasweep.tuning.errors import WrongReturn
from contrasweep.tuning.experiment import Experiment, Value
from contrasweep.tuning.methods.declaration import Hyperparameter, Need
from contrasweep.tuning.methods.method import (
    Method,
    any_number_of_images,
    hyperparameters_of,
    with_projection_head,
)
from contrasweep.tuning.objectives.batches import Feed, image_feed
from contrasweep.tuning.objectives.objective import Batch, Objective, with_shape
from contrasweep.tuning.objectives.prepared import PreparedData

VIEWS = "views"

BATCH_ARGUMENTS: Mapping[str, Need | None] = MappingProxyType(
    {"labels": "labels", "bias": "bias", "condition": "condition", "clusters": None, "index": None}
)
"""The arguments that a loss may take besides the views, and what each needs of the training data."""


def loss_method(
    loss: type[nn.Module],
    *,
    name: str,
    summary: str,
    paper: str,
    equation: str,
    hyperparameters: Mapping[str, str | Hyperparameter],
    feed: Callable[[Experiment, Any], Feed] = image_feed,
    needs: frozenset[Need] = frozenset(),
    smallest_batch: int = 2,
    space: Space | None = None,
    fits: Callable[[Mapping[str, Value], int], None] = any_number_of_images,
) -> Method:
    """Return the method that minimises `loss` of the projection head's output.

    The names of the loss's arguments say what it is given:

    - `forward` takes `views` `(V, B, D)`, not normalised, and those of `BATCH_ARGUMENTS` that it needs, each
      with B rows. It returns a scalar. If the loss also has a method `terms` with the same arguments that
      returns `LossTerms`, the run minimises their mean and reports the fraction of dropped anchors; where a
      `losses.Loss` says that it `sums_terms`, it minimises their sum.
    - The constructor takes hyperparameters. Their annotations say what is allowed, see
      `losses.validation.rule_of`, and the constructor has the last word: a ValueError is the user's error.

    Args:
        loss: the class; it may have parameters, which are trained.
        name: what users type.
        summary: what the method does, in a clause.
        paper: its source.
        equation: the place in the paper.
        hyperparameters: by name, what each argument of the constructor is; a `Hyperparameter` for a setting
            that the loss does not take (one of the batches, say).
        feed: the batches of an experiment.
        needs: what else the method needs of the training data.
        smallest_batch: the smallest batch size that it can learn from, in images.
        space: the search space; a plug-in must give one.
        fits: raises ValueError if hyperparameters are not possible with so many training images.

    Raises:
        ValueError: `loss` is no class of `nn.Module`, nothing gives an argument that it takes, it requires
            one that has a condition in the space, or it lacks a named hyperparameter.
    """
    _refuse_other_than_class(loss)
    of_loss = {one: text for one, text in hyperparameters.items() if isinstance(text, str)}
    own = {one: item for one, item in hyperparameters.items() if isinstance(item, Hyperparameter)}
    _refuse_open_arguments(loss, of_loss)
    _refuse_conditions(loss, space)
    arguments = batch_arguments(loss)
    if "clusters" in arguments and feed is image_feed:
        raise ValueError(f"{loss.__name__} takes clusters: feed= must give batches that have them")
    rules = hyperparameters_of(loss, of_loss)

    def new(values: Mapping[str, Value]) -> nn.Module:
        return loss(**{one: value for one, value in values.items() if one in of_loss})

    def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
        of_batch = LossOfBatch(new(experiment.hyperparameters), arguments)
        return with_projection_head(experiment, encoder, of_batch)

    def verify(values: Mapping[str, Value]) -> None:
        """Raise ValueError unless the loss can be made, where all that it requires is given."""
        if all(one in values for one in _required(loss)):
            with torch.random.fork_rng(devices=[]):
                new(values)

    asked = {need for one in arguments if (need := BATCH_ARGUMENTS[one]) is not None}
    return Method(
        name=name,
        summary=summary,
        paper=paper,
        equation=equation,
        hyperparameters={one: own.get(one) or rules[one] for one in hyperparameters},
        build=build,
        feed=feed,
        needs=needs | asked,
        smallest_batch=smallest_batch,
        space=space,
        verify=verify,
        fits=fits,
    )


def batch_arguments(loss: type[nn.Module]) -> tuple[str, ...]:
    """Return the names of what a loss takes of a batch besides the views.

    Raises:
        ValueError: the first argument is not `views`, one is unknown (with the nearest name), or one of
            `BATCH_ARGUMENTS` has a default: `forward(views, labels=None)` would train without labels.
    """
    function = getattr(loss, "terms", loss.forward)
    _, first, *others = inspect.signature(function).parameters.values()
    if first.name != VIEWS:
        raise ValueError(f"the first argument of {loss.__name__} must be views, given {first.name!r}")
    found = tuple(one.name for one in others if one.default is inspect.Parameter.empty)
    check_arguments(loss.__name__, found, BATCH_ARGUMENTS, "batch")
    optional = [one.name for one in others if one.name in BATCH_ARGUMENTS and one.name not in found]
    if optional:
        raise ValueError(
            f"{loss.__name__} has a default for {', '.join(optional)}: remove the default, and the loss is "
            "given those of the batch; remove the argument to train without them"
        )
    return found


class LossOfBatch(nn.Module):
    """A loss that takes its arguments from a batch by their names."""

    def __init__(self, loss: nn.Module, arguments: tuple[str, ...]) -> None:
        super().__init__()
        self.loss = loss
        self.arguments = arguments

    def forward(self, views: Tensor, batch: Batch) -> LossTerms | Tensor:
        """Return the terms, or the scalar, for `views` `(V, B, D)` and the batch that they show.

        Raises:
            WrongReturn: the loss returns something else.
        """
        given = {name: getattr(batch, name) for name in self.arguments}
        assert all(value is not None for value in given.values()), "checked when the experiment was resolved"
        # The mean of the terms is not the value of a loss that sums them.
        summed = getattr(self.loss, "sums_terms", False)
        compute = self.loss if summed else getattr(self.loss, "terms", self.loss)
        result = compute(views, **given)
        if isinstance(result, LossTerms):
            self._refuse_unlike(result)
            return result
        if isinstance(result, Tensor) and result.dim() == 0:
            return result
        raise WrongReturn(
            f"{type(self.loss).__name__} must return a scalar or LossTerms, returned {with_shape(result)}"
        )

    def _refuse_unlike(self, terms: LossTerms) -> None:
        """Refuse values and valid of different shapes: their mean would be a multiple of the loss."""
        values, valid = terms
        if values.shape != valid.shape or valid.dtype != torch.bool:
            raise WrongReturn(
                f"{type(self.loss).__name__} must return LossTerms with values and bool valid of one shape, "
                f"returned {with_shape(values)} and {with_shape(valid)} of {valid.dtype}"
            )


def _refuse_other_than_class(loss: object) -> None:
    if isinstance(loss, type) and issubclass(loss, nn.Module):
        return
    given = getattr(loss, "__name__", f"an object of {type(loss).__name__}")
    raise ValueError(
        f"the loss must be a class of torch.nn.Module, which is made for each run; given {given}"
    )


def _required(loss: type[nn.Module]) -> tuple[str, ...]:
    arguments = inspect.signature(loss).parameters.values()
    open_ended = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return tuple(
        one.name for one in arguments if one.default is inspect.Parameter.empty and one.kind not in open_ended
    )


def _refuse_open_arguments(loss: type[nn.Module], given: Mapping[str, str]) -> None:
    missing = [one for one in _required(loss) if one not in given]
    if missing:
        raise ValueError(
            f"{loss.__name__} requires {', '.join(missing)}: name it among the hyperparameters, "
            "or give it a default"
        )


def _refuse_conditions(loss: type[nn.Module], space: Space | None) -> None:
    """Refuse what the loss requires if the space has a condition for it: some trials would not have it."""
    given = () if space is None else space.parameters
    open_ones = [one.name for one in given if one.when and one.name in _required(loss)]
    if open_ones:
        raise ValueError(
            f"{loss.__name__} requires {', '.join(open_ones)}, which has a condition (when) in the search "
            "space, so that trials lack it: give it a default"
        )
