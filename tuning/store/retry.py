"""Trying again what a filesystem refuses: a share that is away for a moment, a disk until there is room."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

# These say something about the path and not about the filesystem: to ask again would give the same answer.
_ANSWERS: Final = (
    FileNotFoundError,
    FileExistsError,
    PermissionError,
    NotADirectoryError,
    IsADirectoryError,
)

log = logging.getLogger(__name__)

T = TypeVar("T")


class StoreUnavailable(OSError):
    """The results store cannot be used, and went on so through all tries; what is in it is as it was."""


@dataclass(frozen=True)
class Retry:
    """How often, and after how long, a refused operation is tried again.

    Attributes:
        waits: seconds before the second try, the third, ...
        wait: waits so many seconds.
    """

    waits: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0)
    wait: Callable[[float], None] = time.sleep

    def call(self, what: str, action: Callable[[], T]) -> T:
        """Return what `action` returns, at the first try that succeeds.

        Args:
            what: is tried, for the messages.
            action: may be called many times.

        Raises:
            FileNotFoundError, PermissionError, ...: the filesystem's answer about a path, at once.
            StoreUnavailable: no try succeeded; it names the last error.
        """
        for seconds in self.waits:
            try:
                return action()
            except _ANSWERS:
                raise
            except OSError as error:
                log.warning("The store: %s failed, tried again in %g s: %s", what, seconds, error)
                self.wait(seconds)
        try:
            return action()
        except _ANSWERS:
            raise
        except OSError as error:
            raise StoreUnavailable(self._message(what, error)) from error

    def _message(self, what: str, error: OSError) -> str:
        tries = f"{len(self.waits) + 1} times in {sum(self.waits):g} s" if self.waits else "once"
        return f"the results store cannot be used: {what} was tried {tries}; the last answer: {error}"


ONCE: Final = Retry(waits=())
"""For what a user waits for, and what is repeated anyway."""
