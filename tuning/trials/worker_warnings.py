"""Warnings that workers log: the driver logs each kind once.

Ray does not show the logs of workers, and thousands of trials may give the same warning.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

log = logging.getLogger(__name__)


MOST_KINDS = 20
"""The most kinds of one logger that are passed on: a text that names the step is another kind each time."""


@dataclass(frozen=True)
class Warned:
    """A warning as it was logged: by which logger, its text, and the text without what was put into it.

    Two are of one kind if they have the same logger, and the same text before anything is put into it.
    """

    logger: str
    kind: str
    text: str


class _Kinds:
    """The kinds of warnings that were there, at most `MOST_KINDS` of each logger."""

    def __init__(self) -> None:
        self._seen: dict[str, set[str]] = {}

    def is_new(self, warned: Warned) -> bool:
        """Whether a warning is the first of its kind, and its logger has not had too many kinds."""
        seen = self._seen.setdefault(warned.logger, set())
        if warned.kind in seen or len(seen) >= MOST_KINDS:
            return False
        seen.add(warned.kind)
        return True


class _Passing(logging.Handler):
    """Passes on the first warning of each kind, and nothing else: the store holds what trials fail of."""

    def __init__(self, send: Callable[[Warned], object]) -> None:
        super().__init__(logging.WARNING)
        self._send = send
        self._kinds = _Kinds()

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on a record; without other handlers, the log of the worker has it as it would without us."""
        if logging.lastResort is not None and logging.getLogger().handlers == [self]:
            logging.lastResort.handle(record)
        if record.levelno != logging.WARNING:
            return
        try:
            warned = Warned(record.name, str(record.msg), record.getMessage())
            if self._kinds.is_new(warned):
                self._send(warned)
        except Exception:  # noqa: BLE001 a call with wrong arguments, as for any handler: it must not fail the trial
            self.handleError(record)


@contextmanager
def passing_on_warnings(send: Callable[[Warned], object]) -> Iterator[None]:
    """Call `send` with the first warning of each kind inside the block, by us, a plug-in or a library."""
    passing, everything = _Passing(send), logging.getLogger()
    everything.addHandler(passing)
    try:
        yield
    finally:
        everything.removeHandler(passing)


@contextmanager
def warning_once() -> Iterator[None]:
    """Let the handlers of this process take the first warning of each kind inside the block.

    It is for runs in the process of the driver, which would repeat a warning at every step, or in every run.
    """
    handlers = logging.getLogger().handlers[:]
    filters = [_first_of_kind() for _ in handlers]
    for handler, first in zip(handlers, filters, strict=True):
        handler.addFilter(first)
    try:
        yield
    finally:
        for handler, first in zip(handlers, filters, strict=True):
            handler.removeFilter(first)


def _first_of_kind() -> Callable[[logging.LogRecord], bool]:
    kinds = _Kinds()

    def first(record: logging.LogRecord) -> bool:
        # The text matters only to those who show it.
        return record.levelno != logging.WARNING or kinds.is_new(Warned(record.name, str(record.msg), ""))

    return first


class KeptWarnings:
    """The first warnings of each kind that are logged in this process from now on, until they are taken."""

    def __init__(self) -> None:
        self._kept: list[Warned] = []
        logging.getLogger().addHandler(_Passing(self._kept.append))

    def take(self) -> list[Warned]:
        """Return the warnings since the last call."""
        taken = self._kept[:]
        del self._kept[: len(taken)]
        return taken


class WarnOnce:
    """Logs warnings of workers in this process, the first of each kind, with the names of other loggers."""

    def __init__(self) -> None:
        self._kinds = _Kinds()

    def __call__(self, warnings: Iterable[Warned]) -> None:
        """Log those of kinds that were not there before."""
        for one in warnings:
            if self._kinds.is_new(one):
                if one.logger.partition(".")[0] == log.name.partition(".")[0]:
                    logging.getLogger(one.logger).warning("%s", one.text)
                else:
                    log.warning("%s: %s", one.logger, one.text)
