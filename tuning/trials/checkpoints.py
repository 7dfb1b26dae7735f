"""When trials save their states, and the thread that writes them while training goes on."""

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

log = logging.getLogger(__name__)

CHECKPOINT_SECONDS = 10.0
"""A trial saves its state about this often: the most that a death can cost, beside the epoch in progress."""

QUICK_SECONDS = 0.5
"""A state that takes longer to copy and write is saved less often, so that this takes 5 % of the time."""

RAREST_SECONDS = 600.0
"""A state that takes very long is still saved about this often."""


class State(Protocol):
    """The state of a run in the host's memory, see `training.checkpoint.Snapshot`."""

    def dumped(self) -> bytes:
        """Return it as bytes."""


class Checkpoints:
    """The states of a trial, or of several that train in lockstep: one thread writes them in their order.

    Training waits while a state is copied, not while it is written. A write that failed raises its error in
    `due` or `wait`. A process that is killed leaves the last file that was written whole.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._saved = clock()
        self._asked: int | None = None
        self._due = False
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._writes: list[Future[float]] = []
        self._seconds = 0.0

    def begin(self) -> None:
        """Count the time from now: what came before was no training."""
        self._saved = self._clock()

    def due(self, epoch: int) -> bool:
        """Whether the state after an epoch is to be saved; trials in lockstep all get the first one's answer.

        A state is due `CHECKPOINT_SECONDS` after the last one. If the last states took longer than
        `QUICK_SECONDS`, the time between states grows in proportion, up to `RAREST_SECONDS`.

        Raises:
            StoreUnavailable: an earlier state could not be written.
        """
        self._collect([write for write in self._writes if write.done()])
        if epoch != self._asked:
            self._asked, now = epoch, self._clock()
            self._due = now - self._saved >= CHECKPOINT_SECONDS
            if self._due:
                # Only now is it known what the last states took.
                self.wait()
                self._due = now - self._saved >= self._interval()
            if self._due:
                self._saved, self._seconds = now, 0.0
        return self._due

    def save(self, take: Callable[[], State], write: Callable[[bytes], object]) -> None:
        """Take a copy of the state, and write it in the thread."""
        started = time.perf_counter()
        state = take()
        taken = time.perf_counter() - started

        def write_it() -> float:
            begun = time.perf_counter()
            write(state.dumped())
            return taken + time.perf_counter() - begun

        self._writes.append(self._thread.submit(write_it))

    def wait(self) -> None:
        """Return when all states are written.

        Raises:
            StoreUnavailable: one of them could not be written.
        """
        self._collect(list(self._writes))

    def end(self) -> None:
        """Return when nothing is being written any more; a state that could not be written is not needed."""
        while self._writes:
            try:
                self.wait()
            except OSError as error:
                log.warning("the state of a trial that has ended was not written: %s", error)

    def _interval(self) -> float:
        slow = max(1.0, self._seconds / QUICK_SECONDS)
        return min(CHECKPOINT_SECONDS * slow, RAREST_SECONDS)

    def _collect(self, writes: list[Future[float]]) -> None:
        for write in writes:
            self._writes.remove(write)
            self._seconds += write.result()
