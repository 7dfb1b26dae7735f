"""Final runs in a table: the trained encoders of each configuration, and the untrained ones beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tuning.analysis.summary import Summary, summarise


@dataclass(frozen=True)
class FinalSummary:
    """Test scores over seeds: accuracy in 0..1, colour MSE in squared 8-bit levels (or None)."""

    encoder: str
    accuracy: Summary
    colour_mse: Summary | None


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
    scored = [row for row in rows if row["metric.test.untrained_accuracy"] is not None]
    by_seed = {row["seed"]: row for row in scored}
    found.append(_summary("untrained", list(by_seed.values()), "metric.test.untrained_"))
    return [summary for summary in found if summary is not None]


def _summary(name: str, rows: Sequence[Mapping[str, Any]], prefix: str) -> FinalSummary | None:
    accuracy = summarise(row[prefix + "accuracy"] for row in rows)
    if accuracy is None:
        return None
    return FinalSummary(name, accuracy, summarise(row.get(prefix + "colour_mse") for row in rows))
