"""What every tracker is for us: it takes runs."""

from typing import Protocol

from contrasweep.tuning.errors import SweepFailed
from contrasweep.tuning.track.runs import TrackedRun


class TrackerFailed(SweepFailed):
    """A tracker refused, or did not answer; what it has already stays, and the same command goes on."""


class Tracker(Protocol):
    """A connection to a tracker."""

    def send(self, run: TrackedRun) -> bool:
        """Make the tracker's copy of a run equal to it; return whether anything was missing.

        Its parent was sent before.

        Raises:
            TrackerFailed: the tracker refused, or did not answer.
        """
