"""What a method is: a name and a source, what it needs of the data, its hyperparameters, how it is built."""

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import torch
from torch import Tensor, nn

from contrasweep.losses.terms import LossTerms
from contrasweep.models import Encoder, build_head
from contrasweep.search_spaces import Fixed, Parameter, Range, Space, TypeName, method_space
from contrasweep.tuning.errors import InputError, unknown_name
from contrasweep.tuning.experiment import Experiment, Value
from contrasweep.tuning.objectives.batches import Feed, image_feed
from contrasweep.tuning.objectives.objective import Batch, ContrastiveObjective, Metrics, Objective

Need = Literal["labels", "condition", "bias", "bias or condition", "own views"]
"""What a method can need of the training data beyond the images."""


@dataclass(frozen=True)
class Hyperparameter:
    """What values a hyperparameter may have at all (the search range is the space's business)."""

    summary: str
    kind: type[float] | type[int] | type[str]
    choices: tuple[str, ...] = ()
    above: float | None = None
    below: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    needs: Mapping[str, Need] = field(default_factory=lambda: MappingProxyType({}))
    """By choice, what it needs of the training data; nothing where it is not among them."""

    def check(self, name: str, value: Value) -> None:
        """Raise InputError unless `value` is allowed for the hyperparameter `name`."""
        if self.kind is str:
            if not isinstance(value, str) or value not in self.choices:
                raise unknown_name(f"value of {name}:", str(value), self.choices)
            return
        whole = isinstance(value, int) and not isinstance(value, bool)
        number = whole or (self.kind is float and isinstance(value, float))
        if not number or value != value or value in (float("inf"), float("-inf")):
            raise InputError(f"{name} must be a finite {self.kind.__name__}, given {value!r}")
        assert not isinstance(value, str)
        if self.above is not None and value <= self.above:
            raise InputError(f"{name} must be above {self.above:g}, given {value!r}")
        if self.below is not None and value >= self.below:
            raise InputError(f"{name} must be below {self.below:g}, given {value!r}")
        if self.at_least is not None and value < self.at_least:
            raise InputError(f"{name} must be at least {self.at_least:g}, given {value!r}")
        if self.at_most is not None and value > self.at_most:
            raise InputError(f"{name} must be at most {self.at_most:g}, given {value!r}")

    def check_parameter(self, parameter: Parameter, origin: str) -> None:
        """Raise InputError unless every value that the `parameter` of a space can take is allowed."""
        expected = _COLUMN_TYPES[self.kind]
        if parameter.type != expected:
            raise InputError(
                f"{origin}: {parameter.name}: given {parameter.type} values; allowed: {expected}"
            )
        values = (parameter.low, parameter.high) if isinstance(parameter, Range) else parameter.values()
        others = parameter.of if isinstance(parameter, Fixed) else ()
        for value in (*values, *others):
            try:
                self.check(parameter.name, value)
            except InputError as error:
                raise InputError(f"{origin}: {error}") from None


_COLUMN_TYPES: Mapping[type, TypeName] = {float: "float", int: "int", str: "string"}

TEMPERATURE = Hyperparameter("the scale tau of the scores", float, above=0)


@dataclass(frozen=True)
class Method:
    """A way to pretrain, as the registry holds it.

    Attributes:
        name: what users type.
        summary: what it does, in a clause.
        paper: where it comes from.
        equation: where in the paper.
        hyperparameters: what its own settings may be.
        build: the objective of an experiment, around an `Encoder`, on `PreparedData`; of a method that needs
            two views, around a `MultiViewEncoder`, on `PreparedTransductive`.
        feed: the batches of an experiment; two views of images in uniform batches unless it says otherwise.
        needs: what it needs of the training data beyond the images.
        smallest_batch: images.
        classifies: whether its objective predicts classes itself, and is scored by that too.
        train_metrics: the names of what its objective reports beside the loss.
        space: its search space; None for the file `search_spaces/NAME.yaml`, which contrasweep's own have.
    """

    name: str
    summary: str
    paper: str
    equation: str
    hyperparameters: Mapping[str, Hyperparameter]
    build: Callable[[Experiment, Any, Any], Objective]
    feed: Callable[[Experiment, Any], Feed] = image_feed
    needs: frozenset[Need] = frozenset()
    smallest_batch: int = 2
    classifies: bool = False
    train_metrics: tuple[str, ...] = ()
    space: Space | None = None

    def search_space(self) -> Space:
        """Return what is searched of the method unless the user says otherwise."""
        return method_space(self.name) if self.space is None else self.space

    def check(self, hyperparameters: Mapping[str, Value]) -> None:
        """Raise InputError unless every hyperparameter is known and its value allowed."""
        for name, value in hyperparameters.items():
            if name not in self.hyperparameters:
                raise unknown_name(f"hyperparameter of {self.name}:", name, self.hyperparameters)
            self.hyperparameters[name].check(name, value)

    def check_space(self, space: Space) -> None:
        """Check that a search space and the hyperparameters agree: the same names, types and allowed values.

        Raises:
            ValueError: they do not (InputError where it is a value).
        """
        own = [parameter for parameter in space.parameters if "." not in parameter.name]
        if {parameter.name for parameter in own} != set(self.hyperparameters):
            raise ValueError(
                f"{space.origin} has {_listed(p.name for p in own)}, its hyperparameters are "
                f"{_listed(self.hyperparameters)}: both must be the same"
            )
        for parameter in own:
            self.hyperparameters[parameter.name].check_parameter(parameter, space.origin)

    def needs_with(self, hyperparameters: Mapping[str, Value]) -> frozenset[Need]:
        """Return what the method needs of the training data with these hyperparameters."""
        of_choices = (self.hyperparameters[name].needs.get(str(v)) for name, v in hyperparameters.items())
        return self.needs | {need for need in of_choices if need is not None}


def with_projection_head(
    experiment: Experiment,
    encoder: Encoder,
    loss: Callable[[Tensor, Batch], LossTerms],
    measure: Callable[[Tensor, Batch], Metrics] | None = None,
) -> ContrastiveObjective:
    """Return the objective `loss(head(encoder(views)), batch)` with the experiment's projection head.

    `measure` gives metrics of the same embeddings and batch.
    """
    return ContrastiveObjective(encoder, experiment_head(experiment, encoder), loss, measure)


def experiment_head(experiment: Experiment, encoder: Encoder) -> nn.Module:
    """Return a new projection head for the encoder's features, as the experiment has it."""
    settings = experiment.head
    return build_head(settings.name, encoder.width, settings.hidden, settings.width)


@torch.no_grad()
def head_outputs(head: nn.Module, inputs: int) -> int:
    """Return how wide a head's embeddings of `inputs` features are: tried on a copy, to leave no trace."""
    embeddings: Tensor = copy.deepcopy(head).eval()(torch.zeros(1, inputs))
    return embeddings.shape[1]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
