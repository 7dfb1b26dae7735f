"""Errors that a user can act on."""

import reprlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from contrasweep.names import unknown
from contrasweep.plugins import PluginError
from contrasweep.plugins import WrongReturn as WrongReturn  # told here with the other errors

if TYPE_CHECKING:
    from pydantic import ValidationError

_LONGEST: Final = 400

MOST_LEFT_OUT: Final = 100
"""Of more values than these, `every_fault` tells the first fault only: it would check them too often."""

Result = TypeVar("Result")


class InputError(ValueError):
    """The user gave something wrong; the message says what was given and what is allowed (exit code 2)."""


class SweepFailed(RuntimeError):
    """Work was done but gave nothing usable; the message says how to go on (exit code 1)."""


class SweepStopped(SweepFailed):
    """Work stopped before its end for a reason outside it; what was finished is kept, and it can go on."""


class GpuFault(SweepFailed):
    """The GPU no longer serves this process; as far as the process can tell, its trial is not at fault."""


class SharedGpuFull(SweepFailed):
    """Memory ran out on a GPU that other trials use too; alone, the trial may have enough."""


class NotRepeatable(RuntimeError):
    """The code of a plug-in draws random numbers that do not follow from the run's seed."""


class TrainingDiverged(RuntimeError):
    """The loss became NaN or Inf, or an epoch had no anchor; the message says where, with which settings."""


@contextmanager
def told_to_user(before: str = "", after: str = "") -> Iterator[None]:
    """Turn a ValueError inside the block into an InputError: its words, between those given here."""
    try:
        yield
    except ValueError as error:
        raise InputError(f"{before}{error}{after}") from None


class Faults:
    """Faults of one input that are found one after the other, and told together."""

    def __init__(self) -> None:
        self._told: list[str] = []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note a ValueError of the block; what follows the block is checked all the same.

        Raises:
            PluginError: a plug-in is broken, which is no fault of the input.
        """
        try:
            yield
        except PluginError:
            raise
        except ValueError as error:
            self._told.append(str(error))

    def tell(self) -> None:
        """Raise InputError with all faults that were noted; do nothing where none was."""
        if self._told:
            raise InputError(in_one(self._told))


def in_one(faults: Sequence[str]) -> str:
    """Return several faults as one message."""
    *others, last = faults
    return "; ".join([*(fault.removesuffix(".") for fault in others), last])


def every_fault(check: Callable[[dict[str, Any]], Result], values: Mapping[str, Any]) -> Result:
    """Return `check(values)`; if it refuses the values, tell every fault that it finds, not only the first.

    The values without which the refusal would be another are those at fault. The others are checked again
    without them, until none is refused.

    Raises:
        InputError: `check` refused the values; the message has all its reasons, each once.
    """
    try:
        return check(dict(values))
    except InputError as error:
        refusal: str | None = str(error)
    faults: list[str] = []
    left = dict(values)
    while refusal is not None:
        if not any(refusal.removesuffix(".") in fault for fault in faults):
            faults.append(refusal)
        others = left if len(left) <= MOST_LEFT_OUT else ()
        guilty = [name for name in others if _refusal(check, left, [name]) != refusal]
        if not guilty:
            break
        refusal = _refusal(check, left, guilty)
        left = {name: value for name, value in left.items() if name not in guilty}
    raise InputError(in_one(faults))


def _refusal(
    check: Callable[[dict[str, Any]], object], values: Mapping[str, Any], without: Collection[str]
) -> str | None:
    """Return why the values are refused if some are left out; None if they are not."""
    try:
        check({name: value for name, value in values.items() if name not in without})
    except InputError as error:
        return str(error)
    return None


def refuse_repeats(what: str, given: Sequence[str]) -> None:
    """Raise InputError unless one thing or more is `given`, each once; `what` is its kind."""
    if not given:
        raise InputError(f"given no {what}; allowed: one or more, each once")
    if len(set(given)) < len(given):
        raise InputError(f"given {', '.join(given)}; allowed: each {what} once")


def unknown_name(kind: str, given: str, allowed: Iterable[str]) -> InputError:
    """Return the error for a `given` name that is not among the `allowed` ones, with the nearest of them."""
    return InputError(unknown(kind, given, sorted(allowed)))


def one_line(text: object) -> str:
    """Return a text of any length and number of lines, such as an error of a library, as one short line."""
    line = " ".join(str(text).split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."


def first_reason(error: "ValidationError", tags: Collection[str] = ()) -> str:
    """Return the first of pydantic's reasons as one line: the field's path, what is expected, what was given.

    Args:
        error: what pydantic raised.
        tags: names of the members of unions, which pydantic puts into the path of a field.
    """
    first = error.errors(include_url=False)[0]
    path = ".".join(str(part) for part in first["loc"] if part not in tags)
    before = f"{path}: " if path else ""
    if first["type"] == "missing":
        return one_line(f"{before}it is missing")
    if first["type"] == "extra_forbidden":
        return one_line(f"{before}there is no such field")
    if first["type"] in ("value_error", "json_invalid"):
        return one_line(before + first["msg"].removeprefix("Value error, "))
    return one_line(f"{before}{first['msg']}, given {reprlib.repr(first['input'])}")
