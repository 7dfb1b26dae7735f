"""Limits of trials, and of the search as a whole."""

import math
import re
from dataclasses import dataclass
from typing import Final

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.limits import check_count
from contrasweep.tuning.planning.stop_when import parse_stop_when

_LETTERS: Final = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
_WRITTEN: Final = re.compile(r"(?:\d+(?:\.\d+)?[dhms])+")
LONGEST: Final = 3650 * 86_400
"""The longest duration that is read, in seconds: ten years."""


@dataclass(frozen=True)
class Limits:
    """Limits of the trials of a search (worker deaths, running time), and of all together (time, no gain).

    Attributes:
        max_failures: how often its worker may die; the trial goes on in another one, from its checkpoint.
        trial_timeout: how many seconds it may run in one worker before it fails; None for any time.
        budget: once trials have run for so many seconds by the clock, over all drivers of the study, no
            further trial begins; those that run go on to their ends. None for any time.
        stop_when: the condition (`parse_stop_when`) on which no further trial begins, as the search no longer
            gains; None for no condition.
        stop_from: the first trial that this condition counts. Those before an extension count once.
    """

    max_failures: int = 1
    trial_timeout: float | None = None
    budget: float | None = None
    stop_when: str | None = None
    stop_from: int = 0

    def __post_init__(self) -> None:
        """Refuse limits that no trial could keep.

        Raises:
            InputError: a negative or huge number of failures, no time, or a condition that cannot be read.
        """
        check_count("max-failures", self.max_failures, least=0)
        if self.trial_timeout is not None and not 0 < self.trial_timeout < math.inf:
            raise InputError(f"trial-timeout must be above 0 seconds, given {self.trial_timeout:g}")
        if self.budget is not None and not 0 < self.budget < math.inf:
            raise InputError(f"budget must be above 0 seconds, given {self.budget:g}")
        if self.stop_when is not None:
            parse_stop_when(self.stop_when)


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
