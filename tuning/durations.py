"""Durations: as text for pages, lists and a line that counts; read from text; the time that spans cover."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from contrasweep.tuning.errors import InputError

Scale = tuple[float, str]
Span = tuple[datetime, datetime]
"""From when to when."""

_UNITS: tuple[Scale, ...] = ((86_400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))
_LETTERS: Final = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
_WRITTEN: Final = re.compile(r"(?:\d+(?:\.\d+)?[dhms])+")
LONGEST: Final = 3650 * 86_400
"""The longest duration that is read, in seconds: ten years."""


def in_words(seconds: float) -> str:
    """Return `12.3 s`, `4 min 05 s` or `3 h 07 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    hours, minutes, rest = _parts(seconds)
    return f"{hours:,} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def in_one_unit(seconds: float) -> str:
    """Return `0.5 min`, `1.5 h` or `2.3 days`: minutes, hours from one hour on, days from two days on."""
    if seconds >= 2 * 86_400:
        return f"{seconds / 86_400:,.1f} days"
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.1f} min"


def on_a_clock(seconds: float) -> str:
    """Return `m:ss` or `h:mm:ss`."""
    hours, minutes, rest = _parts(seconds)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def unit_for(seconds: float) -> Scale:
    """Return the unit for an axis that ends at `seconds`: its length in seconds, and its name.

    It is the largest unit that the axis holds twice; below two minutes it is the second.
    """
    return next((unit for unit in _UNITS if seconds >= 2 * unit[0]), _UNITS[-1])


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


def _parts(seconds: float) -> tuple[int, int, int]:
    """Return whole hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    return *divmod(minutes, 60), rest


def covered(spans: Iterable[Span]) -> float:
    """Return the seconds in which at least one of the spans was open."""
    total = 0.0
    reached: datetime | None = None
    for begin, end in sorted(spans):
        start = begin if reached is None or begin > reached else reached
        total += max(0.0, (end - start).total_seconds())
        reached = end if reached is None else max(reached, end)
    return total
