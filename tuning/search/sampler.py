"""What a sampler is, and the samplers by name: every `Sampler` that a module of this package defines."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler

from contrasweep.plugins import Registry, defined_beside
from contrasweep.search_spaces import Choice, Range, Space
from contrasweep.tuning.errors import unknown_name

Draw = Callable[[int, int], BaseSampler]
"""Returns Optuna's sampler for one trial, from a seed of its own and its number within the search."""


def _takes_any_space(space: Space, objectives: int) -> None:
    return


@dataclass(frozen=True)
class Sampler:
    """A way to propose configurations.

    Attributes:
        name: the name that users type.
        start: returns what draws each trial of a search over a space with so many planned trials.
        check: raises InputError if the sampler cannot search a space for so many objectives.
        exhaustive: it proposes each point of a finite space once, so the space gives the number of trials.
        learns: its proposals depend on the results of earlier trials.
    """

    name: str
    start: Callable[[Space, int], Draw]
    check: Callable[[Space, int], None] = _takes_any_space
    exhaustive: bool = False
    learns: bool = True


SAMPLERS: Registry[Sampler] = Registry("sampler", lambda: defined_beside(__name__, Sampler), (Sampler,))
"""Our own samplers and those of plug-ins, by name."""


def sampler_of(name: str) -> Sampler:
    """Return a sampler by name.

    Raises:
        InputError: there is none of that name; the message gives the nearest.
    """
    if name not in SAMPLERS:
        raise unknown_name("sampler", name, SAMPLERS)
    return SAMPLERS[name]


def distribution(parameter: Choice | Range) -> BaseDistribution:
    """Return Optuna's description of a searched parameter."""
    if isinstance(parameter, Choice):
        return CategoricalDistribution(parameter.choices)
    if parameter.is_integer:
        return IntDistribution(int(parameter.low), int(parameter.high), log=parameter.is_log)
    return FloatDistribution(parameter.low, parameter.high, log=parameter.is_log)


def varied(parameters: Iterable[Choice | Range]) -> Mapping[str, BaseDistribution]:
    """Return Optuna's descriptions of the parameters that have more than one value, by name."""
    distributions = {parameter.name: distribution(parameter) for parameter in parameters}
    return {name: dist for name, dist in distributions.items() if not dist.single()}
