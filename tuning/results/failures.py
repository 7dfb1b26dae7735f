"""Why trials and runs failed: errors that say the same of different trials are one kind."""

import ast
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from contrasweep.tuning.errors import one_line

_VALUES: Final = re.compile(r"\{[^{}]*\}")
"""The values of one trial, by name."""

_WITH_VALUES: Final = re.compile(rf"( with)? ?{_VALUES.pattern}")
_OF_ONE_TRIAL: Final = re.compile(rf"{_VALUES.pattern}|[-+]?\d+(\.\d+)?(e[-+]?\d+)?")
"""What differs between the errors of trials that failed in the same way: values by name, and numbers."""


def kinds_of_errors(errors: Iterable[str | None]) -> list[tuple[int, str]]:
    """Return how many errors there are of each kind, and the first of them; the most frequent kind first.

    An error is told by its last line, where Python names it. Errors that differ in numbers or in the values
    of a configuration alone are one kind; the example leaves out the values in which they differ.

    Args:
        errors: the error of each trial; None, which is not counted, for a trial without one.
    """
    kinds: dict[str, list[str]] = {}
    for text in ((error or "").strip() for error in errors):
        if text:
            kinds.setdefault(_OF_ONE_TRIAL.sub("#", text.splitlines()[-1]), []).append(text)
    return sorted(((len(own), _example(own)) for own in kinds.values()), key=lambda kind: -kind[0])


def common_error(errors: Sequence[str | None]) -> str | None:
    """Return the last line of the most frequent error, and how many have it; None without any error."""
    kinds = kinds_of_errors(errors)
    if not kinds:
        return None
    count, error = kinds[0]
    return f"{one_line(error.splitlines()[-1])} ({count} of {len(errors)})"


def _example(errors: Sequence[str]) -> str:
    """Return the first error, with those values alone that all of them have."""
    values = [tuple(_VALUES.findall(error)) for error in errors]
    if len(set(values)) == 1:
        return errors[0]
    shared = iter([_shared(group) for group in zip(*values, strict=False)])
    return _WITH_VALUES.sub(lambda found: _shown(found, next(shared, {})), errors[0])


def _shared(group: Sequence[str]) -> dict[str, Any]:
    """Return the entries that all of these texts of mappings share; none if one is no mapping."""
    try:
        mappings = [ast.literal_eval(text) for text in group]
        first, *others = (dict(one) for one in mappings)
    except (ValueError, SyntaxError, TypeError):
        return {}
    return {key: value for key, value in first.items() if all(one.get(key) == value for one in others)}


def _shown(found: re.Match[str], values: dict[str, Any]) -> str:
    return found[0].partition("{")[0] + repr(values) if values else ""
