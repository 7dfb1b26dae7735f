"""A count of what happens on the stand-in device: operations, copies, and where the host waits for it."""

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["launch", "to_device", "to_host", "wait", "draw"]

KINDS: tuple[Kind, ...] = ("launch", "to_device", "to_host", "wait", "draw")
"""What is counted.

`launch`: an operation, unless it is only a view; `to_device` and `to_host`: a copy; `wait`: the host stops
until the device is done (a blocking copy, a value that is read, a result whose size depends on values);
`draw`: random numbers from the device's own generator, of which a GPU gives others than a CPU.
"""

_open: list["Counts"] = []


@dataclass
class Counts:
    """How often each kind happened, by the operation and the function of the library that called it."""

    places: Counter[tuple[Kind, str]] = field(default_factory=Counter)

    def of(self, kind: Kind) -> int:
        """Return how often a kind happened."""
        return sum(count for (one, _), count in self.places.items() if one == kind)

    def where(self, kind: Kind) -> dict[str, int]:
        """Return how often a kind happened, by place: `item in losses.groups.group_sums`."""
        return {place: count for (one, place), count in self.places.items() if one == kind}

    def since(self, before: "Counts") -> "Counts":
        """Return what happened after `before` was copied from these counts."""
        return Counts(self.places - before.places)

    def copied(self) -> "Counts":
        return Counts(Counter(self.places))

    def __str__(self) -> str:
        return ", ".join(f"{self.of(kind)} {kind}" for kind in KINDS)


@contextmanager
def counted() -> Iterator[Counts]:
    """Count what happens on the device inside."""
    counts = Counts()
    _open.append(counts)
    try:
        yield counts
    finally:
        _open.remove(counts)


def note(kind: Kind, operation: str) -> None:
    """Tell all that count now."""
    if _open:
        place = f"{operation} in {_caller()}"
        for counts in _open:
            counts.places[kind, place] += 1


def _caller() -> str:
    """Return the innermost function of the library that is running, as `losses.groups.group_sums`."""
    frame = sys._getframe(2)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("contrasweep."):
            return f"{module.removeprefix('contrasweep.')}.{frame.f_code.co_qualname}"
        frame = frame.f_back  # type: ignore[assignment]
    # torch computes gradients in a thread of the device.
    return "test" if threading.get_ident() == threading.main_thread().ident else "backward"
