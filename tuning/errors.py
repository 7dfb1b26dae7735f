"""Errors that a user can act on."""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class InputError(ValueError):
    """The user gave something wrong; the message says what was given and what is allowed (exit code 2)."""


class SweepFailed(RuntimeError):
    """Work was done but gave nothing usable; the message says how to go on (exit code 1)."""


class TrainingDiverged(RuntimeError):
    """The loss became NaN or Inf, or a batch held no anchor; the message names method, step and settings."""


@contextmanager
def told_to_user(before: str = "", after: str = "") -> Iterator[None]:
    """Turn a ValueError inside the block into an InputError: its words, between those given here."""
    try:
        yield
    except ValueError as error:
        raise InputError(f"{before}{error}{after}") from None


def unknown_name(kind: str, given: str, allowed: Iterable[str]) -> InputError:
    """Return the error for a `given` name that is not among the `allowed` ones, with the nearest of them."""
    names = sorted(allowed)
    return InputError(f"unknown {kind} {given!r}.{did_you_mean(given, names)} Known: {', '.join(names)}.")


def did_you_mean(given: str, allowed: Iterable[str], prefix: str = "") -> str:
    """Return ` Did you mean 'x'?` with the allowed name that is most like the given one, or no text at all.

    Args:
        given: the name that is not allowed.
        allowed: the names that are.
        prefix: put before the nearest name; the comparison leaves it out.
    """
    spelled = {name.lower(): name for name in allowed}
    near = difflib.get_close_matches(given.lower(), spelled, n=1, cutoff=0.5)
    return f" Did you mean {prefix + spelled[near[0]]!r}?" if near else ""
