"""`Method`: what a method declares, and how to build its objective and its batches."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from contrasweep.losses.terms import LossTerms
from contrasweep.losses.validation import rule_of
from contrasweep.models import Encoder
from contrasweep.tuning.errors import told_to_user
from contrasweep.tuning.experiment import Experiment, Value
from contrasweep.tuning.methods.declaration import Declaration, Hyperparameter
from contrasweep.tuning.objectives.batches import Feed, image_feed
from contrasweep.tuning.objectives.heads import experiment_head
from contrasweep.tuning.objectives.objective import Batch, ContrastiveObjective, Metrics, Objective

TEMPERATURE = "the scale tau of the scores"


def hyperparameters_of(loss: type[nn.Module], summaries: Mapping[str, str]) -> dict[str, Hyperparameter]:
    """Return arguments of a loss's constructor as hyperparameters: their rules are the loss's own.

    Args:
        loss: the class.
        summaries: what each of the arguments is, in a clause.

    Raises:
        ValueError: the constructor has no such argument (with the nearest name).
    """
    return {name: Hyperparameter(summary, rule_of(loss, name)) for name, summary in summaries.items()}


def _accept(hyperparameters: Mapping[str, Value]) -> None:
    """Accept: each value by itself is all there is to check."""


def any_number_of_images(hyperparameters: Mapping[str, Value], images: int) -> None:
    """Accept: no hyperparameter depends on the number of training images."""


@dataclass(frozen=True, kw_only=True)
class Method(Declaration):
    """A way to pretrain, as the registry holds it: its declaration, and how to build it.

    Attributes:
        build: makes the objective of an experiment from an `Encoder` and `PreparedData`. A method that needs
            "own views" gets a `MultiViewEncoder` and `PreparedTransductive`.
        feed: makes the batches of an experiment; by default, uniform batches with two views of each image.
        verify: raises ValueError if the loss refuses hyperparameters that are allowed one by one.
        fits: raises ValueError if they are not possible with so many training images.
    """

    build: Callable[[Experiment, Any, Any], Objective]
    feed: Callable[[Experiment, Any], Feed] = image_feed
    verify: Callable[[Mapping[str, Value]], None] = _accept
    fits: Callable[[Mapping[str, Value], int], None] = any_number_of_images

    def check(self, hyperparameters: Mapping[str, Value]) -> None:
        """Raise InputError unless all hyperparameters are known and allowed, one by one and together."""
        super().check(hyperparameters)
        with told_to_user(f"{self.name}: "):
            self.verify(hyperparameters)


def with_projection_head(
    experiment: Experiment,
    encoder: Encoder,
    loss: Callable[[Tensor, Batch], LossTerms | Tensor],
    measure: Callable[[Tensor, Batch], Metrics] | None = None,
) -> ContrastiveObjective:
    """Return the objective `loss(head(encoder(views)), batch)` with the experiment's projection head.

    `measure` gives metrics of the same embeddings and batch.
    """
    return ContrastiveObjective(encoder, experiment_head(experiment, encoder), loss, measure)
