"""What the searcher reads in a trial's results: merits, scores over seeds, violations of conditions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from contrasweep.tuning.results.best import merit
from contrasweep.tuning.results.violations import violations
from contrasweep.tuning.search import PastTrial
from contrasweep.tuning.statistics import Summary, is_number
from contrasweep.tuning.store import SearchRecord


@dataclass(frozen=True)
class ResultReader:
    """Reads the flattened results of Tune, which `worker.report_of` makes.

    Attributes:
        search: how the study is searched.
        reported: the metrics for which it has columns.
    """

    search: SearchRecord
    reported: Sequence[str]

    def merits(self, result: Mapping[str, Any]) -> list[float | None]:
        """Return the merits of the metrics of the search, of which the larger is always better."""
        given = [(metric, _metric(result, metric)) for metric in self.search.metrics]
        return [None if value is None else merit(metric, value) for metric, value in given]

    def violations(self, result: Mapping[str, Any], status: str) -> dict[str, float]:
        """Return how far a trial with this last result breaks each condition of the search."""
        return violations(self.search.keep, status, partial(_metric, result), self.reported)

    def score(self, result: Mapping[str, Any]) -> Summary | None:
        """Return the final score over the trial's seeds; None if the result has none."""
        metric = self.search.metrics[0]
        mean, std = _metric(result, metric), result.get(f"std/{metric}")
        return None if mean is None else Summary(mean, std, self.search.seeds)

    def ended(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """Return what `end_trial` takes: the epoch, and the metrics unless they are means over seeds."""
        given = {metric: _metric(result, metric) for metric in self.reported}
        return {"epoch": result.get("epoch"), "metrics": given if self.search.seeds == 1 else None}


def final_merits(values: Sequence[float | None]) -> list[float] | None:
    """Return a completed trial's merits, by which trials are ranked; None if any is missing."""
    found = [value for value in values if is_number(value)]
    return found if found and len(found) == len(values) else None


def merits_of_past(trial: PastTrial) -> list[float] | None:
    """Return the final merits of a completed trial of the store; None of one that breaks a condition."""
    values = trial.value if isinstance(trial.value, Sequence) else [trial.value]
    return final_merits(values) if trial.keeps else None


def _metric(result: Mapping[str, Any], metric: str) -> float | None:
    """Return a metric; None if the result has none."""
    value: float | None = result.get(f"metrics/{metric}")
    return value
