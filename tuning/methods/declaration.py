"""What a method declares: its name and source, its data needs, its settings. Nothing here imports torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, get_args

from contrasweep.names import did_you_mean, unknown
from contrasweep.rules import OneOf, Rule
from contrasweep.search_spaces import Fixed, Parameter, Range, Scalar, Space, TypeName, method_space
from contrasweep.tuning.errors import told_to_user, unknown_name
from contrasweep.tuning.experiment import Experiment, Value, setting_names

ALWAYS_REPORTED = ("loss", "dropped_fraction", "lr")
"""Metrics of training that every run reports, as `train.loss` and so on."""

Need = Literal["labels", "condition", "bias", "bias or condition", "own views"]
"""What a method can need of the training data besides images."""


@dataclass(frozen=True)
class Hyperparameter:
    """A setting of the method itself: its meaning and its allowed values.

    A search space covers part of these values. `needs` maps a choice to what it needs of the training data; a
    choice without an entry needs nothing. `counts_columns` says that it is a number of columns of the
    condition, so that it can be at most all of them.
    """

    summary: str
    rule: Rule
    needs: Mapping[str, Need] = field(default_factory=lambda: MappingProxyType({}))
    counts_columns: bool = False

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
        """Refuse names of metrics that cannot be reported, and needs that there are not."""
        asked = {need for one in self.hyperparameters.values() for need in one.needs.values()}
        for need in sorted(self.needs | asked):
            if need not in get_args(Need):
                raise ValueError(unknown(f"need of {self.name}", need, get_args(Need)))
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

    def check_columns(self, hyperparameters: Mapping[str, Value], columns: int) -> None:
        """Raise ValueError if a hyperparameter counts more than all `columns` of the condition."""
        for name, value in hyperparameters.items():
            if self.hyperparameters[name].counts_columns and int(value) > columns:
                raise ValueError(
                    f"{name} must be at most the {columns:,} columns of the condition, given {value:,}"
                )

    def check_space(self, space: Space) -> None:
        """Check that a search space and the hyperparameters agree: the same names, types and allowed values.

        Raises:
            ValueError: they do not (InputError where it is a value), or the space has a name besides them
                that is no setting.
        """
        taken = [name for name in self.hyperparameters if name in Experiment.model_fields]
        if taken:
            raise ValueError(f"its hyperparameter {taken[0]!r} has the name of a setting: give it another")
        known = self.known_settings()
        surplus = [name for name in space.names if name not in known]
        missing = [name for name in self.hyperparameters if name not in space.names]
        if surplus or missing:
            told = [f"Surplus: {name!r}.{did_you_mean(name, known, 'setting')}" for name in surplus]
            told += [f"Missing: {name!r}." for name in missing]
            raise ValueError(
                f"{space.origin} has other names than it must have. {' '.join(told)} It must have all "
                f"hyperparameters of {self.name} ({', '.join(self.hyperparameters) or 'none'}), and may have "
                "settings"
            )
        for parameter in (space[name] for name in self.hyperparameters):
            expected = self.hyperparameters[parameter.name].type
            if parameter.type != expected:
                given = f"given {parameter.type} values; allowed: {expected} values"
                raise ValueError(f"{space.origin}: {parameter.name}: {given}")
            with told_to_user(f"{space.origin}: "):
                self.check_parameter(parameter, space.defaults())

    def known_settings(self) -> list[str]:
        """Return the names that an experiment of the method has values for: hyperparameters, settings."""
        any_of_it = Experiment(method=self.name, dataset="any")
        return list(dict.fromkeys([*self.hyperparameters, *setting_names(any_of_it)]))

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
