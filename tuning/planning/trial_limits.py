"""Limits per trial."""

import math
from dataclasses import dataclass

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.limits import check_count


@dataclass(frozen=True)
class Limits:
    """Limits per trial: worker deaths and running time.

    Attributes:
        max_failures: how often its worker may die; the trial goes on in another one, from its checkpoint.
        trial_timeout: how many seconds it may run in one worker before it fails; None for any time.
    """

    max_failures: int = 1
    trial_timeout: float | None = None

    def __post_init__(self) -> None:
        """Refuse limits that no trial could keep.

        Raises:
            InputError: a negative or huge number of failures, or no time.
        """
        check_count("max-failures", self.max_failures, least=0)
        if self.trial_timeout is not None and not 0 < self.trial_timeout < math.inf:
            raise InputError(f"trial-timeout must be above 0 seconds, given {self.trial_timeout:g}")
