"""How a trial and a study stand: the words of the store, and which of them mean that a trial has ended."""

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
