"""Warnings that workers log, for the driver: it logs each kind once.

Ray shows the log of no worker, and thousands of trials may warn of the same thing.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Warned:
    """A warning as it was logged: by which logger, its text, and the text without what was put into it."""

    logger: str
    kind: str
    text: str


class _Passing(logging.Handler):
    """Passes on each warning, and nothing else: the store holds what trials fail of."""

    def __init__(self, send: Callable[[Warned], object]) -> None:
        super().__init__(logging.WARNING)
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on a record; without other handlers, the log of the worker has it as it would without us."""
        if logging.lastResort is not None and logging.getLogger().handlers == [self]:
            logging.lastResort.handle(record)
        if record.levelno == logging.WARNING:
            self._send(Warned(record.name, str(record.msg), record.getMessage()))


@contextmanager
def passing_on_warnings(send: Callable[[Warned], object]) -> Iterator[None]:
    """Call `send` with each warning that is logged inside the block, by us, a plug-in or a library."""
    passing, everything = _Passing(send), logging.getLogger()
    everything.addHandler(passing)
    try:
        yield
    finally:
        everything.removeHandler(passing)


class KeptWarnings:
    """The warnings that are logged in this process from now on, until they are taken."""

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
        self._told: set[tuple[str, str]] = set()

    def __call__(self, warnings: Iterable[Warned]) -> None:
        """Log those of kinds that were not there before."""
        for one in warnings:
            kind = one.logger, one.kind
            if kind not in self._told:
                self._told.add(kind)
                if one.logger.partition(".")[0] == log.name.partition(".")[0]:
                    logging.getLogger(one.logger).warning("%s", one.text)
                else:
                    log.warning("%s: %s", one.logger, one.text)
