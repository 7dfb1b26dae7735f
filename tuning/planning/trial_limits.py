"""Limits of trials, and of the search as a whole."""

import math
import re
from typing import Final

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.limits import check_count
from contrasweep.tuning.planning.stop_when import parse_stop_when

_LETTERS: Final = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
_WRITTEN: Final = re.compile(r"(?:\d+(?:\.\d+)?[dhms])+")
LONGEST: Final = 3650 * 86_400
"""The longest duration that is read, in seconds: ten years."""


def check_limits(
    max_failures: int | None = None,
    trial_timeout: float | None = None,
    budget: float | None = None,
    stop_when: str | None = None,
) -> None:
    """Refuse limits that no trial could keep; `plan_sweep` describes them, and None was not given.

    Raises:
        InputError: a negative or huge number of failures, no time, or a condition that cannot be read.
    """
    check_count("max-failures", max_failures, least=0)
    for what, seconds in (("trial-timeout", trial_timeout), ("budget", budget)):
        if seconds is not None and not 0 < seconds < math.inf:
            raise InputError(f"{what} must be above 0 seconds, given {seconds:g}")
    if stop_when is not None:
        parse_stop_when(stop_when)


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
