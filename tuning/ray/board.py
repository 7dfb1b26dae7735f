"""The board on which the first rank of a run posts its records.

Ray starts a process for it: this module imports nothing, so that the process is there at once.
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
