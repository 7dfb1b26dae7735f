"""What a sweep bears of its trials: workers that die, trials that take too long."""

import math
from dataclasses import dataclass

from contrasweep.tuning.errors import InputError


@dataclass(frozen=True)
class Limits:
    """Allowed of every trial.

    Attributes:
        max_failures: how often its worker may die and the trial goes on in another, from its checkpoint.
        trial_timeout: seconds that it may take in one worker, None for any time; beyond them it has failed.
    """

    max_failures: int = 1
    trial_timeout: float | None = None

    def __post_init__(self) -> None:
        """Refuse what no trial could keep.

        Raises:
            InputError: a negative number of failures, or no time.
        """
        if self.max_failures < 0:
            raise InputError(f"max-failures must be at least 0, given {self.max_failures}")
        if self.trial_timeout is not None and not 0 < self.trial_timeout < math.inf:
            raise InputError(f"trial-timeout must be above 0 seconds, given {self.trial_timeout:g}")
