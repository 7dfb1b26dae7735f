"""Successive halving: after which epochs trials are compared, and how many of them continue."""

import math
from dataclasses import dataclass
from typing import Final

from contrasweep.names import counted
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment.schedulers import Scheduler, stops_by_rank
from contrasweep.tuning.limits import check_count

USUAL_ETA: Final = 3
LARGEST_ETA: Final = 1_000


@dataclass(frozen=True)
class Halving:
    """How ASHA compares trials.

    Attributes:
        eta: one in so many of the trials that reach a rung goes on, and each rung is so many times as late as
            the one before (Li et al., MLSys 2020, Algorithm 2).
        grace: how many epochs every trial gets, which is the first rung; None for the warmup of the learning
            rate and a tenth of all epochs.

    Raises:
        InputError: a number is too small or too large.
    """

    eta: int = USUAL_ETA
    grace: int | None = None

    def __post_init__(self) -> None:
        check_count("eta", self.eta, least=2, most=LARGEST_ETA)
        check_count("grace", self.grace)

    @property
    def is_usual(self) -> bool:
        """Whether nothing was chosen."""
        return self == Halving()

    def grace_period(self, epochs: int, warmup: float) -> int:
        """Return how many epochs every trial gets, of runs of `epochs` whose learning rate rises in `warmup`.

        While the rate rises, the trials with the smallest rates lead, whatever they reach in the end.
        """
        usual = math.ceil(warmup) + max(1, epochs // 10)
        return min(epochs, usual if self.grace is None else self.grace)

    def rungs(self, epochs: int, warmup: float) -> tuple[int, ...]:
        """Return the epochs at which trials are compared and the weaker ones are stopped."""
        found, rung = [], self.grace_period(epochs, warmup)
        while rung <= epochs:
            found.append(rung)
            rung *= self.eta
        return tuple(found)


def check_halving(halving: Halving, scheduler: Scheduler, epochs: int, *, asked: bool = False) -> None:
    """Refuse rules that the scheduler does not have, or that let every trial run to its end.

    Args:
        halving: the rules.
        scheduler: what would follow them.
        epochs: the epochs of a trial that is not stopped.
        asked: whether a rule was given, if only the usual one.

    Raises:
        InputError: the scheduler is not `asha`, alone or with another, or the grace period is as long as the
            runs.
    """
    if halving.is_usual and not asked:
        return
    if not stops_by_rank(scheduler):
        raise InputError(f"--eta and --grace go with --scheduler asha or asha+curves, given {scheduler}")
    if halving.grace is not None and halving.grace >= epochs:
        raise InputError(
            f"--grace {halving.grace}: a trial has {counted(epochs, 'epoch')}, so none would be stopped; "
            "give fewer, or --scheduler none"
        )
