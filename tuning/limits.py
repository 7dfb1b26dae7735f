"""The largest numbers that a user may give. A larger number is most likely a mistake, or cannot be stored."""

from numbers import Integral

from contrasweep.tuning.errors import InputError

MOST = 1_000_000
"""The largest count of anything: trials, seeds, epochs, workers, cores, trials at once."""

LARGEST_SEED = 2**62
"""The largest seed. The next ones, of further replicates and of final runs, fit 64 bits too."""

MOST_LEVELS = 1_000
"""The largest number of levels into which a grid cuts a range."""

SHORTEST_WATCH, LONGEST_WATCH = 1.0, 86_400.0
"""The seconds after which `--watch` writes a page again."""


def check_count(what: str, given: int | None, *, least: int = 1, most: int = MOST) -> None:
    """Check a count that a user gave; None was not given.

    Raises:
        InputError: it is no whole number, below `least` or above `most`.
    """
    if given is not None:
        _refuse_other_kinds(what, given)
    if given is not None and given < least:
        raise InputError(f"{what} must be at least {least}, given {given}")
    if given is not None and given > most:
        raise InputError(f"{what} must be at most {most:,}, given {_shortly(given)}")


def check_watch(seconds: float | None) -> None:
    """Check the time after which a page is written again; None was not given.

    Raises:
        InputError: it is below 1 second, or above a day.
    """
    if seconds is not None and not SHORTEST_WATCH <= seconds <= LONGEST_WATCH:
        raise InputError(
            f"--watch takes {SHORTEST_WATCH:g} to {LONGEST_WATCH:,.0f} seconds, given {seconds:g}"
        )


def check_seed(given: int) -> None:
    """Check a seed that a user gave.

    Raises:
        InputError: it is no whole number, above `LARGEST_SEED` or below the negative of it.
    """
    _refuse_other_kinds("seed", given)
    if abs(given) > LARGEST_SEED:
        raise InputError(f"seed must be at most 2^62, given {_shortly(given)}")


def _refuse_other_kinds(what: str, given: object) -> None:
    # A caller in Python may give anything.
    if not isinstance(given, Integral) or isinstance(given, bool):
        raise InputError(f"{what} must be a whole number, given {given!r}")


def _shortly(number: int) -> str:
    # Python refuses to spell a number of thousands of digits.
    return f"{number:,}" if abs(number) < 10**30 else "a number of more than 30 digits"
