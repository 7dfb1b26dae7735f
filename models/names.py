"""The error for a name that a user types and that is not registered."""

import difflib
from collections.abc import Iterable


def unknown_name(kind: str, given: str, known: Iterable[str]) -> ValueError:
    """Return the error for a `given` name that is not among the `known` names; it suggests the nearest."""
    names = list(known)
    nearest = difflib.get_close_matches(str(given), names, n=1, cutoff=0.5)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    return ValueError(f"unknown {kind} {given!r}; known: {', '.join(names)}{hint}")
