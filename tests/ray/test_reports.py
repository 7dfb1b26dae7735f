"""How workers report epochs: short ones together, and one after which the trial may be stopped by itself."""

from typing import Any

import pytest

from contrasweep.tuning.ray.worker import TrialWorker
from contrasweep.tuning.trials.trial import TrialReport
from contrasweep.tuning.trials.worker_warnings import KeptWarnings

EPOCHS = 5


class Clock:
    """Seconds that pass only when an epoch is trained."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Training:
    """Stands in for a `Trial`: an epoch takes `seconds`."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._epoch = -1

    def advance(self) -> TrialReport:
        self._epoch += 1
        self._clock.now += self._seconds
        return TrialReport(self._epoch, {"score": 0.5}, self._seconds, finished=self._epoch == EPOCHS)

    def close(self) -> None:
        """Nothing is open."""


def reports(
    monkeypatch: pytest.MonkeyPatch, seconds: float, stops_at: set[int]
) -> list[list[dict[str, Any]]]:
    """Return the reports of a trial, those that came together in one list."""
    clock = Clock()
    monkeypatch.setattr("contrasweep.tuning.ray.worker.time", clock)

    class Worker(TrialWorker):
        def setup(self, config: dict[str, Any]) -> None:
            self._trial, self._stops_at = Training(clock, seconds), frozenset(stops_at)
            self._rung_metric, self._device, self._group = "score", "cpu", None
            self._warned = KeptWarnings()

    worker = Worker({})
    told = [worker.train_buffered(1000, 0.0)]
    while not told[-1][-1]["done"]:
        told.append(worker.train_buffered(1000, 0.0))
    return told


@pytest.mark.parametrize(
    ("seconds", "stops_at", "together"),
    [
        (0.01, set(), [[0, 1, 2, 3, 4, 5]]),
        (0.01, {2}, [[0, 1], [2], [3, 4, 5]]),
        (0.01, {1, 3}, [[0], [1], [2], [3], [4, 5]]),
        (0.2, set(), [[0, 1], [2, 3], [4, 5]]),
        (1.0, set(), [[0], [1], [2], [3], [4], [5]]),
    ],
)
def test_short_epochs_are_reported_together(
    monkeypatch: pytest.MonkeyPatch, seconds: float, stops_at: set[int], together: list[list[int]]
) -> None:
    told = reports(monkeypatch, seconds, stops_at)
    assert [[result["epoch"] for result in one] for one in told] == together


def test_a_report_says_how_long_ago_its_epoch_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    told = reports(monkeypatch, 0.2, set())
    assert [[result["age"] for result in one] for one in told] == [[pytest.approx(0.2), 0.0]] * 3
