"""Final runs in a table: the trained encoders of each configuration, and the untrained ones beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tuning.analysis.summary import Summary, summarise

_UNTRAINED = "untrained_"


@dataclass(frozen=True)
class FinalSummary:
    """Test scores over seeds by name: accuracies in 0..1, `colour_mse` in squared 8-bit levels."""

    encoder: str
    scores: Mapping[str, Summary]

    @property
    def accuracy(self) -> Summary:
        """Accuracy of the linear probe; on biased data averaged over the groups of (class, bias).

        Multi-label data has none: there it is the first score, F1.
        """
        first = next(iter(self.scores.values()))
        return self.scores.get("balanced_accuracy", self.scores.get("accuracy", first))


def summarise_runs(rows: Sequence[Mapping[str, Any]]) -> list[FinalSummary]:
    """Return a summary of each configuration in `rows` of a final study, then of the untrained encoders.

    The untrained encoders of one seed are the same for every configuration with the same network: each counts
    once.
    """
    trials = sorted({row["trial"] for row in rows})
    found = []
    for trial in trials:
        own = [row for row in rows if row["trial"] == trial]
        name = f"{own[0]['method']}, trial {trial}"
        found.append(_summary(name, own, "metric.test."))
    prefix = f"metric.test.{_UNTRAINED}"
    columns = [name for row in rows[:1] for name in row if name.startswith(prefix)]
    scored = [row for row in rows if any(row[name] is not None for name in columns)]
    by_seed = {row["seed"]: row for row in scored}
    found.append(_summary("untrained", list(by_seed.values()), prefix))
    return [summary for summary in found if summary is not None]


def _summary(name: str, rows: Sequence[Mapping[str, Any]], prefix: str) -> FinalSummary | None:
    columns = [column for row in rows[:1] for column in row if column.startswith(prefix)]
    found = {
        column.removeprefix(prefix): summarise(row[column] for row in rows)
        for column in columns
        if not column.removeprefix(prefix).startswith(_UNTRAINED)
    }
    scores = {score: summary for score, summary in found.items() if summary is not None}
    return FinalSummary(name, scores) if scores else None
