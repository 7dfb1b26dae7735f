"""What a method is: a name and a source, what it needs of the data, its hyperparameters, how it is built."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

from data import LabelledImages
from losses.terms import LossTerms
from models import Encoder, projection_head
from tuning.config import Experiment, Value
from tuning.errors import InputError, unknown_name
from tuning.training.objective import Objective


@dataclass(frozen=True)
class Hyperparameter:
    """What values a hyperparameter may have at all (the search range is the space's business)."""

    summary: str
    kind: type[float] | type[int] | type[str]
    choices: tuple[str, ...] = ()
    above: float | None = None
    at_least: float | None = None

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
        if self.at_least is not None and value < self.at_least:
            raise InputError(f"{name} must be at least {self.at_least:g}, given {value!r}")


TEMPERATURE = Hyperparameter("the scale tau of the scores", float, above=0)


@dataclass(frozen=True)
class Method:
    """A way to pretrain, as the registry holds it.

    `build` gives the objective for an experiment around an encoder; `clusters_of`, where a method draws every
    batch from one cluster, gives the training images' cluster ids `(N,)`.
    """

    name: str
    summary: str
    paper: str
    equation: str
    hyperparameters: Mapping[str, Hyperparameter]
    build: Callable[[Experiment, Encoder], Objective]
    needs_condition: bool = False
    smallest_batch: int = 2
    clusters_of: Callable[[Experiment, LabelledImages], Tensor] | None = None

    def check(self, hyperparameters: Mapping[str, Value]) -> None:
        """Raise InputError unless every hyperparameter is known and its value allowed."""
        for name, value in hyperparameters.items():
            if name not in self.hyperparameters:
                raise unknown_name(f"hyperparameter of {self.name}:", name, self.hyperparameters)
            self.hyperparameters[name].check(name, value)


def with_projection_head(
    experiment: Experiment, encoder: Encoder, loss: Callable[[Tensor, Tensor | None], LossTerms]
) -> Objective:
    """Return the objective `loss(head(encoder(views)))` with the experiment's projection head."""
    settings = experiment.head
    head = projection_head(encoder.width, settings.hidden or encoder.width, settings.width)
    return Objective(encoder, head, loss)
