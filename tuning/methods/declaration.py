"""What a method declares: its name and source, its data needs, its settings. Nothing here imports torch."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from contrasweep.rules import OneOf, Rule
from contrasweep.search_spaces import Fixed, Parameter, Range, Scalar, Space, TypeName, method_space
from contrasweep.tuning.errors import told_to_user, unknown_name
from contrasweep.tuning.experiment import Experiment, Value

ALWAYS_REPORTED = ("loss", "dropped_fraction", "lr")
"""Metrics of training that every run reports, as `train.loss` and so on."""

Need = Literal["labels", "condition", "bias", "bias or condition", "own views"]
"""What a method can need of the training data besides images."""


@dataclass(frozen=True)
class Hyperparameter:
    """A setting of the method itself: its meaning and its allowed values.

    A search space covers part of these values. `needs` maps a choice to what it needs of the training data; a
    choice without an entry needs nothing.
    """

    summary: str
    rule: Rule
    needs: Mapping[str, Need] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def type(self) -> TypeName:
        """The column type of its values."""
        if isinstance(self.rule, OneOf):
            return "string"
        return "int" if self.rule.whole else "float"

    def check(self, name: str, value: Value) -> None:
        """Raise InputError unless `value` is allowed for the hyperparameter `name`."""
        with told_to_user():
            self.rule.check(name, value)


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """What is known of a method before it is built.

    Attributes:
        name: what users type.
        summary: what it does, in a clause.
        paper: its source.
        equation: the place in the paper.
        hyperparameters: its own settings and their allowed values.
        needs: what it needs of the training data besides images.
        smallest_batch: the smallest batch size that it can learn from, in images.
        local_crops: whether its objective uses the local crops of multi-crop (`views.local_crops`).
        classifies: whether its objective predicts classes; its predictions are then scored too.
        train_metrics: the names of the metrics that its objective reports besides the loss.
        space: its search space; None means the file `search_spaces/NAME.yaml`, as for contrasweep's own.
    """

    name: str
    summary: str
    paper: str
    equation: str
    hyperparameters: Mapping[str, Hyperparameter]
    needs: frozenset[Need] = frozenset()
    smallest_batch: int = 2
    local_crops: bool = False
    classifies: bool = False
    train_metrics: tuple[str, ...] = ()
    space: Space | None = None

    def __post_init__(self) -> None:
        """Refuse names of metrics that cannot be reported."""
        for name in self.train_metrics:
            if name in ALWAYS_REPORTED:
                raise ValueError(f"train_metrics of {self.name}: {name!r} is reported by every method")
            if not name.isidentifier():
                raise ValueError(
                    f"train_metrics of {self.name}: given {name!r}; allowed: letters, digits and "
                    "underscores; the prefix train. is added"
                )

    def search_space(self) -> Space:
        """Return the search space that holds unless the user gives another."""
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
        settings = Experiment.model_fields
        own = [one for one in space.parameters if "." not in one.name and one.name not in settings]
        if {parameter.name for parameter in own} != set(self.hyperparameters):
            raise ValueError(
                f"{space.origin} has {_listed(p.name for p in own)}, its hyperparameters are "
                f"{_listed(self.hyperparameters)}: both must be the same"
            )
        for parameter in own:
            expected = self.hyperparameters[parameter.name].type
            if parameter.type != expected:
                given = f"given {parameter.type} values; allowed: {expected} values"
                raise ValueError(f"{space.origin}: {parameter.name}: {given}")
            with told_to_user(f"{space.origin}: "):
                self.check_parameter(parameter, space.defaults())

    def check_parameter(self, parameter: Parameter, others: Mapping[str, Scalar]) -> None:
        """Check that every value which a space has for a hyperparameter is allowed.

        Args:
            parameter: one of the method's hyperparameters: its ends or its choices are tried.
            others: the values of the other parameters meanwhile.

        Raises:
            InputError: a value is not allowed.
        """
        values = (parameter.low, parameter.high) if isinstance(parameter, Range) else parameter.values()
        more = parameter.of if isinstance(parameter, Fixed) else ()
        beside = {other: value for other, value in others.items() if other in self.hyperparameters}
        for value in (*values, *more):
            self.check({**beside, parameter.name: value})

    def needs_with(self, hyperparameters: Mapping[str, Value]) -> frozenset[Need]:
        """Return what the method needs of the training data with these hyperparameters."""
        of_choices = (self.hyperparameters[name].needs.get(str(v)) for name, v in hyperparameters.items())
        return self.needs | {need for need in of_choices if need is not None}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
