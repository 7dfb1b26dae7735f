"""Durations as text: in words for pages, in one unit for lists, on a clock for a line that counts."""

Scale = tuple[float, str]

_UNITS: tuple[Scale, ...] = ((86_400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))


def in_words(seconds: float) -> str:
    """Return `12.3 s`, `4 min 05 s` or `3 h 07 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    hours, minutes, rest = _parts(seconds)
    return f"{hours:,} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def in_one_unit(seconds: float) -> str:
    """Return `0.5 min`, `59.0 min` or `1.5 h`: minutes, or hours from one hour on."""
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


def _parts(seconds: float) -> tuple[int, int, int]:
    """Return whole hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    return *divmod(minutes, 60), rest
