"""What a replay compares: the samplers and schedulers asked for, checked without heavy imports."""

from dataclasses import dataclass
from typing import Final

from contrasweep.names import names_in
from contrasweep.tuning.catalogue.declared import DECLARED_SAMPLERS
from contrasweep.tuning.errors import InputError, refuse_repeats
from contrasweep.tuning.experiment.schedulers import Scheduler, check_scheduler, stops_by_rank
from contrasweep.tuning.limits import check_count
from contrasweep.tuning.planning.halving import Halving
from contrasweep.tuning.planning.request import check_sampler

RULES: Final = ("eta", "grace")


@dataclass(frozen=True)
class Setting:
    """A sampler and a scheduler.

    Attributes:
        sampler: a name of `SAMPLERS`.
        rule: the scheduler, a name of `SCHEDULERS`.
        scheduler: the same with its numbers, as it was asked for.
        halving: when `asha` compares trials.
    """

    sampler: str
    rule: Scheduler
    scheduler: str
    halving: Halving

    @property
    def name(self) -> str:
        """How tables call it."""
        return f"{self.sampler}, {self.scheduler}"


@dataclass(frozen=True)
class Effort:
    """How much is simulated.

    Attributes:
        full_trials: the budget of a search, as many epochs as so many trials take that are not stopped.
        workers: trials at once.
        seeds: how many times each search runs.

    Raises:
        InputError: a number is too small or too large, or the budget may end before any trial has.
    """

    full_trials: int = 20
    workers: int = 4
    seeds: int = 20

    def __post_init__(self) -> None:
        check_count("full-trials", self.full_trials)
        check_count("workers", self.workers)
        check_count("seeds", self.seeds, least=2)
        if self.full_trials < self.workers:
            raise InputError(
                f"--full-trials {self.full_trials} is fewer than --workers {self.workers}: the budget may "
                "end before any trial has trained to its last epoch; give at least as many"
            )


def settings_of(samplers: str, schedulers: str) -> tuple[Setting, ...]:
    """Return every pair of the samplers and schedulers named in two lists with commas.

    Args:
        samplers: `tpe,random`, say.
        schedulers: `asha,asha:eta=4:grace=2,none`, say.

    Raises:
        InputError: a name is unknown (with the nearest), is given twice, or cannot be replayed.
    """
    chosen = names_in(samplers)
    refuse_repeats("sampler", chosen)
    for name in chosen:
        check_sampler(name)
        if DECLARED_SAMPLERS[name].exhaustive:
            raise InputError(
                f"--samplers {name}: it proposes a fixed list, which depends on no result; leave it out"
            )
    rules = names_in(schedulers)
    refuse_repeats("scheduler", rules)
    return tuple(Setting(one, *_ruled(rule)) for one in chosen for rule in rules)


def _ruled(text: str) -> tuple[Scheduler, str, Halving]:
    given, *rules = text.split(":")
    name = check_scheduler(given)
    numbers: dict[str, int] = {}
    for rule in rules:
        key, _, number = rule.partition("=")
        if not stops_by_rank(name) or key not in RULES or key in numbers or not number.isdecimal():
            raise InputError(
                f"--schedulers {text}: given {rule!r}; allowed: asha or asha+curves, with eta=N and "
                "grace=EPOCHS behind colons, each once, as in asha:eta=4:grace=2"
            )
        numbers[key] = int(number)
    return name, text, Halving(**numbers)
