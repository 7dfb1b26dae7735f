"""Names in messages: the nearest to one that does not exist, the error about it, short lists, plurals.

Every suggestion comes from `nearest`. Nothing here imports torch, so that a wrong name is answered at once.
"""

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from contrasweep.other_words import NOT_OFFERED, other_word

MOST_LISTED: Final = 12
"""Of more names than these, a message says which command lists them, where there is one."""

LISTED_BY: Final[Mapping[str, str]] = {
    "method": "contrasweep methods",
    "dataset": "contrasweep datasets",
    "table": "contrasweep tables",
    "command": "contrasweep --help",
}
"""The commands that list all names of a kind."""

_ALIKE = 0.5
"""How much of two names must agree, by `difflib`, for one to be suggested for the other."""

_BEGINNING = 3
"""With so many letters, the beginning of a name stands for it, whatever else is spelled like it."""


def names_in(text: str) -> list[str]:
    """Return the names in a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def nearest(given: str, known: Iterable[str], kind: str = "") -> str | None:
    """Return the known name that is most like the given one, or None if none is like it.

    Capitals and marks between words do not count. The last part of a dotted name, as `lr` of `optimizer.lr`,
    stands for the name, and so do other words of the field (`other_words`) and the beginning of a name.

    Args:
        given: the name that is not known.
        known: the names that are.
        kind: what they name, as "method"; decides which other words stand for them.
    """
    names, typed = list(known), given.lower()
    same = same_name(given, names, kind)
    if same is not None or not typed or other_word(kind, given) == NOT_OFFERED:
        return same
    section, dot, last = given.rpartition(".")
    word = other_word(kind, last)
    if dot and word in names and word.startswith(section + dot):
        return word
    forms = {**_by_last_part(names), **_by_spelling(names)}
    alike = [forms[form] for form in difflib.get_close_matches(typed, forms, n=1, cutoff=_ALIKE)]
    longer = sorted((name for form, name in forms.items() if form.startswith(typed)), key=len)
    # `acc` is short for `accuracy`, though `auc` is spelled more like it.
    found = [*longer, *alike] if len(typed) >= _BEGINNING else [*alike, *longer]
    return found[0] if found else None


def same_name(given: str, known: Iterable[str], kind: str = "") -> str | None:
    """Return the known name for which the given one stands without a doubt; None if there is none.

    The arguments are those of `nearest`, which says what stands for a name.
    """
    names = list(known)
    word = other_word(kind, given)
    if word in names:
        return word
    typed = _plain(given.lower())
    found = [name for form, name in _by_spelling(names).items() if _plain(form) == typed]
    found += [name for form, name in _by_last_part(names).items() if _plain(form) == typed]
    return found[0] if found else None


def _by_spelling(names: Sequence[str]) -> dict[str, str]:
    """Return the names by themselves in small letters; the first of several with one spelling."""
    return {name.lower(): name for name in reversed(names)}


def _by_last_part(names: Sequence[str]) -> dict[str, str]:
    """Return the names by their last part in small letters; the first of several with one last part."""
    return {name.lower().rpartition(".")[2]: name for name in reversed(names)}


def did_you_mean(given: str, known: Iterable[str], kind: str = "", prefix: str = "") -> str:
    """Return ` Did you mean 'x'?` with the nearest known name, or no text at all.

    Args:
        given, known, kind: see `nearest`.
        prefix: put before the nearest name; the comparison leaves it out.
    """
    name = nearest(given, known, kind)
    return "" if name is None else f" Did you mean {prefix + name!r}?"


def unknown(kind: str, given: str, known: Iterable[str], instead: str = "") -> str:
    """Return the message for an unknown name: the given name, the nearest one, and the known names.

    Args:
        kind, given, known: see `nearest`.
        instead: follows `It is not offered` where the field knows the name and we do not have it.
    """
    names = list(known)
    hint = did_you_mean(given, names, kind)
    if other_word(kind, given) == NOT_OFFERED:
        hint = f" It is not offered{instead}."
    return f"unknown {kind} {given!r}.{hint} {known_names(kind, names)}"


def known_names(kind: str, known: Iterable[str]) -> str:
    """Return a sentence with all known names of a kind, or, of many, with the command that lists them."""
    names = list(known)
    if len(names) > MOST_LISTED and kind in LISTED_BY:
        return f"There are {len(names)}: `{LISTED_BY[kind]}` lists them."
    return f"Known: {', '.join(names) or 'none'}."


def few(names: Sequence[str], most: int = 4) -> str:
    """Return names in one line: the first ones, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def few_quoted(names: Iterable[str], most: int = 3) -> str:
    """Return the same of names in quotes, as a message needs them where they come from a user's file."""
    return few([repr(one) for one in names], most)


def check_arguments(whose: str, taken: Iterable[str], known: Collection[str], holder: str) -> None:
    """Raise ValueError, with the nearest name, for an argument that no `holder` (a batch, say) has."""
    for one in taken:
        if one not in known:
            hint = did_you_mean(one, known)
            raise ValueError(
                f"{whose} takes {one!r}, which no {holder} has.{hint} Known: {', '.join(known)}."
            )


def counted(number: int, what: str) -> str:
    """Return `1 cpu`, `2 cpus`, `1,000 cpus`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def with_capital(text: str) -> str:
    """Return a text with its first letter as a capital, for the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def in_utf8(name: str) -> str:
    r"""Return the name of a file as it can be written to one: bytes that are no UTF-8 become `\xff`."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _plain(name: str) -> str:
    """Return a lower-case name without the marks between its words; one of marks alone stays as it is."""
    return "".join(one for one in name if one.isalnum() or one == ".") or name
