"""Errors that a user can act on."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Something the user gave is wrong: the message says what was given and what is allowed (exit code 2)."""


class SweepFailed(RuntimeError):
    """Work was done, but nothing usable came out of it: the message says how to go on (exit code 1)."""


class TrainingDiverged(RuntimeError):
    """The loss became NaN or Inf, or a batch held no anchor; the message names method, step and settings."""


def unknown_name(kind: str, given: str, allowed: Iterable[str]) -> InputError:
    """Return the error for a `given` name that is not among the `allowed` ones, with the nearest of them."""
    names = sorted(allowed)
    near = difflib.get_close_matches(given.lower(), names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return InputError(f"unknown {kind} {given!r}.{hint} Known: {', '.join(names)}.")
