"""What pools are made of, checked before torch is imported."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from contrasweep.search_spaces import Space
from contrasweep.tuning.errors import InputError, refuse_repeats
from contrasweep.tuning.experiment import Value
from contrasweep.tuning.limits import check_count, check_seed
from contrasweep.tuning.planning.request import Request, check_request
from contrasweep.tuning.planning.rules import SearchRules
from contrasweep.tuning.stability.smallest_pool import refuse_few

HALVES: Final[Mapping[str, Value]] = {"validation.halves": True, "validation.fraction": 0.3}
"""One half of the validation split chooses, the other reports; each has 15 % of the images."""


@dataclass(frozen=True)
class PoolRequest:
    """The pools that are asked for.

    Attributes:
        methods: the methods to compare.
        dataset: the dataset.
        size: the configurations of each method.
        seed: of the Sobol sequence.
        values: settings that hold in all configurations.

    Raises:
        InputError: a method is given twice, a number is too small or too large, a setting is wrong, or a
            method searches nothing with these settings.
    """

    methods: Sequence[str]
    dataset: str
    size: int = 48
    seed: int = 0
    values: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what gives no pools."""
        refuse_repeats("method", self.methods)
        check_count("size", self.size)
        check_seed(self.seed)
        few = f"--size {self.size}: `stability` compares that many trials besides the defaults"
        refuse_few(self.size, few)
        if self.values.get("validation.fraction") == 0:
            raise InputError("validation.fraction is 0: a pool is compared on images that are held out")
        for method, space in self.spaces.items():
            if not space.searched:
                raise InputError(f"{method} searches nothing with these settings: leave out some of --set")

    @property
    def halves(self) -> dict[str, Value]:
        """The settings of `HALVES` that `values` do not set."""
        return {name: value for name, value in HALVES.items() if name not in self.values}

    @property
    def trials(self) -> int:
        """The trials of each method: a study begins with the defaults."""
        return self.size + 1

    @cached_property
    def searches(self) -> dict[str, Request]:
        """The search of each method that runs its pool."""
        rules = SearchRules(
            values={**self.halves, **self.values},
            sampler="random",
            scheduler="none",
            trials=self.trials,
            seed=self.seed,
        )
        return {method: check_request(method, self.dataset, rules) for method in self.methods}

    @property
    def spaces(self) -> dict[str, Space]:
        """The space of each method."""
        return {method: search.space for method, search in self.searches.items()}
