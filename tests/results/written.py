"""A study of a real plan whose runs a test writes by hand."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.store import ResultsStore, TrialInfo, TrialWriter, open_location, save_study

STUDY = "study-1"

Metrics = Mapping[str, float | None]


class WrittenStudy:
    """Fair-CCLK on small digits, two epochs a trial; `options` are those of `plan_sweep`."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.plan: SweepPlan = plan_sweep(
            "fair-cclk", "colour-digits", epochs=2, results=folder, name=STUDY, **options
        )
        self.location = open_location(folder, writable=True)
        self.record = self.plan.record()
        save_study(self.location, self.record)
        self.store = ResultsStore(self.location)

    def write(
        self,
        trial: int,
        seed: int,
        values: Mapping[str, Any],
        epochs: Iterable[tuple[int, Metrics]],
        status: str,
        final: Metrics,
        rung: int | None = None,
    ) -> None:
        """Write one run; what is not among `values` has its default."""
        given = self.plan.space.complete({**self.plan.space.defaults(), **values})
        writer = TrialWriter(self.location, self.record, TrialInfo(trial, seed, "search", "x", given, 2), 1)
        writer.start()
        for epoch, metrics in epochs:
            writer.add_epoch(epoch, metrics, seconds=0.0, train_seconds=0.0)
        writer.finish(status, final, rung=rung)  # type: ignore[arg-type]
