"""Boards on which runs post their records or their progress, for the driver.

Ray starts a process for each board. This module imports nothing, so that the process starts quickly.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """An epoch record of `pretrain` without its state.

    `error` says why training ended early, and `kind` is the name of the error's type.
    """

    epoch: int
    epochs: int
    metrics: dict[str, float]
    error: str | None = None
    kind: str = ""


Step = tuple[int, int, int]
"""How far the first rank is: the epoch, the number of the step, and the steps of an epoch."""


class Board:
    """An actor that holds the records and the state of the first rank, for the driver and for a restart."""

    def __init__(self, state: bytes | None) -> None:
        self._rows: list[Row] = []
        self._state = state
        self._step: Step | None = None
        self._epoch = -1
        self._warned: list[Any] = []

    def post(self, row: Row, state: bytes | None) -> None:
        """Add a record and keep the state after it, if it comes with one.

        A new group goes on from the last state, and repeats the epochs after it: they count once.
        """
        if row.error is not None or row.epoch > self._epoch:
            self._rows.append(row)
            self._epoch = row.epoch
        self._state = state or self._state
        self._step = None

    def post_step(self, step: Step) -> None:
        """Keep the latest step of the present epoch."""
        self._step = step

    def warn(self, warned: Any) -> None:
        """Add a warning, a `trials.worker_warnings.Warned`."""
        self._warned.append(warned)

    def take(self) -> tuple[list[Row], Step | None, list[Any]]:
        """Return the records since the last call, the step and the warnings; the state is asked for apart."""
        rows, self._rows = self._rows, []
        step, self._step = self._step, None
        warned, self._warned = self._warned, []
        return rows, step, warned

    def state(self) -> bytes | None:
        """Return the latest state."""
        return self._state


STARTED = -1
"""What a run posts instead of an epoch as soon as its worker is there."""


class EpochBoard:
    """An actor that holds the last epoch of each run, and the errors of failed ones, by their names."""

    def __init__(self) -> None:
        self._epochs: dict[str, int] = {}
        self._errors: dict[str, str] = {}
        self._warned: list[Any] = []

    def post(self, run: str, epoch: int) -> None:
        """Note that a run has ended an epoch, or that a worker of it is there (`STARTED`)."""
        # The workers of one run start one after the other.
        if epoch != STARTED or run not in self._epochs:
            self._epochs[run] = epoch

    def warn(self, warned: Any) -> None:
        """Add a warning, a `trials.worker_warnings.Warned`."""
        self._warned.append(warned)

    def take(self) -> tuple[dict[str, int], list[Any]]:
        """Return the last epoch of the runs that have posted since the last call, and the warnings."""
        epochs, self._epochs = self._epochs, {}
        warned, self._warned = self._warned, []
        return epochs, warned

    def fail(self, run: str, error: str) -> None:
        """Note that a run has failed, and that the store holds so."""
        self._errors[run] = error

    def error(self, run: str) -> str | None:
        """Return the error of a run that has failed; None for any other."""
        return self._errors.get(run)
