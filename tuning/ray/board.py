"""Boards on which runs post their records, or how far they are, for the driver.

Ray starts a process for one: this module imports nothing, so that the process is there at once.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """An epoch record of `pretrain` without its state; `error` says why training ended early."""

    epoch: int
    epochs: int
    metrics: dict[str, float]
    error: str | None = None


class Board:
    """An actor that holds the records and the state of the first rank, for the driver and for a restart."""

    def __init__(self, state: bytes | None) -> None:
        self._rows: list[Row] = []
        self._state = state

    def post(self, row: Row, state: bytes | None) -> None:
        """Add a record and keep the state after it."""
        self._rows.append(row)
        self._state = state or self._state

    def take(self) -> tuple[list[Row], bytes | None]:
        """Return the records since the last call, and the latest state."""
        rows, self._rows = self._rows, []
        return rows, self._state

    def state(self) -> bytes | None:
        """Return the latest state."""
        return self._state


class EpochBoard:
    """An actor that holds the last epoch of each run, by its name."""

    def __init__(self) -> None:
        self._epochs: dict[str, int] = {}

    def post(self, run: str, epoch: int) -> None:
        """Note that a run has ended an epoch."""
        self._epochs[run] = epoch

    def take(self) -> dict[str, int]:
        """Return the runs that have ended an epoch since the last call."""
        epochs, self._epochs = self._epochs, {}
        return epochs
