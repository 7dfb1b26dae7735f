"""How a trial and a study stand: the words of the store, and which of them mean that a trial has ended."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, get_args

Status = Literal["running", "completed", "stopped", "failed", "interrupted"]
"""Of a trial, or of one seed of it."""
STATUSES: Final[tuple[Status, ...]] = get_args(Status)

ENDED: Final[tuple[Status, ...]] = ("completed", "stopped", "failed")
"""A trial with one of these is over."""
OPEN: Final[tuple[Status, ...]] = tuple(status for status in STATUSES if status not in ENDED)
"""A trial with one of these runs, or goes on when its study is resumed."""

StudyState = Literal["running", "interrupted", "ended"]
"""Of a study: its driver is at work, was cut off, or has recorded the end."""


def trial_status(statuses: Sequence[Status], seeds: int) -> Status:
    """Return the status of a trial of `seeds` seeds from the statuses of those that have a row.

    A trial failed if one of its seeds did, was stopped if one of them was, and completed if all of them did.
    Otherwise it has not ended: it is running if a seed is, else interrupted.
    """
    for status in ("failed", "stopped"):
        if status in statuses:
            return status
    if statuses.count("completed") == seeds:
        return "completed"
    return "running" if "running" in statuses else "interrupted"


def counts_in_words(counts: Mapping[str, int]) -> str:
    """Return how many trials have each status: `5 completed, 2 stopped`; empty where there is none."""
    return ", ".join(f"{counts[one]:,} {one}" for one in (*ENDED, *OPEN) if counts.get(one))
