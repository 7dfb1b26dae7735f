"""Names in messages: the error for an unknown name, and short lists."""

import difflib
from collections.abc import Iterable


def unknown(what: str, given: str, known: Iterable[str]) -> str:
    """Return the message for an unknown name: the given name, the nearest one, all allowed names."""
    names = list(known)
    return f"unknown {what} {given!r}.{did_you_mean(given, names)} Known: {', '.join(names) or 'none'}."


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return ` Did you mean 'x'?` with the known name that is most like the given one, or no text at all."""
    spelled = {name.lower(): name for name in known}
    near = difflib.get_close_matches(given.lower(), spelled, n=1, cutoff=0.5)
    return f" Did you mean {spelled[near[0]]!r}?" if near else ""


def first_few(names: Iterable[str], shown: int = 3) -> str:
    """Return the first names as text, with an ellipsis where more follow."""
    given = list(names)
    return ", ".join(map(repr, given[:shown])) + (", ..." if len(given) > shown else "")
