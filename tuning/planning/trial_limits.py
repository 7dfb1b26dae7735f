"""Limits of trials, and of the time that a search takes."""

import math
import re
from dataclasses import dataclass
from typing import Final

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.limits import check_count

_LETTERS: Final = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
_WRITTEN: Final = re.compile(r"(?:\d+(?:\.\d+)?[dhms])+")
LONGEST: Final = 3650 * 86_400
"""The longest duration that is read, in seconds: ten years."""


@dataclass(frozen=True)
class Limits:
    """Limits of the trials of a search: worker deaths and running time, and the time of all together.

    Attributes:
        max_failures: how often its worker may die; the trial goes on in another one, from its checkpoint.
        trial_timeout: how many seconds it may run in one worker before it fails; None for any time.
        budget: once trials have run for so many seconds by the clock, over all drivers of the study, no
            further trial begins; those that run go on to their ends. None for any time.
    """

    max_failures: int = 1
    trial_timeout: float | None = None
    budget: float | None = None

    def __post_init__(self) -> None:
        """Refuse limits that no trial could keep.

        Raises:
            InputError: a negative or huge number of failures, or no time.
        """
        check_count("max-failures", self.max_failures, least=0)
        if self.trial_timeout is not None and not 0 < self.trial_timeout < math.inf:
            raise InputError(f"trial-timeout must be above 0 seconds, given {self.trial_timeout:g}")
        if self.budget is not None and not 0 < self.budget < math.inf:
            raise InputError(f"budget must be above 0 seconds, given {self.budget:g}")


def seconds_in(text: str, what: str) -> float:
    """Return the seconds in `8h`, `90m`, `1h30m`, `45s` or `2d`; `what` names it in messages.

    Raises:
        InputError: it is written otherwise, is no time at all, or more than `LONGEST`.
    """
    written = text.strip().lower()
    if _WRITTEN.fullmatch(written) is None:
        allowed = "days, hours, minutes and seconds, as in 8h, 1h30m or 45s"
        raise InputError(f"{what}: given {text!r}; allowed: {allowed}")
    seconds = sum(float(part[:-1]) * _LETTERS[part[-1]] for part in re.findall(r"[\d.]+[dhms]", written))
    if not 0 < seconds <= LONGEST:
        raise InputError(
            f"{what}: given {text!r}; allowed: above 0 seconds, and at most {LONGEST // 86_400:,}d"
        )
    return seconds
