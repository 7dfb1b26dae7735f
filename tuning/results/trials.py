"""What became of each trial of a search: its seeds' rows in the store, taken together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.statistics import Summary, summarise
from contrasweep.tuning.store.schema import FINAL_STATUSES, Status


@dataclass(frozen=True)
class Outcome:
    """One configuration: how it ended, and each metric over its seeds where every seed has it.

    `open_seeds` are those whose rows do not say that they ended, in a trial that did.
    """

    trial: int
    status: Status
    values: Mapping[str, Scalar]
    metrics: Mapping[str, Summary]
    error: str | None
    open_seeds: tuple[int, ...] = ()


def outcomes(trials: pa.Table, plan: SweepPlan) -> list[Outcome]:
    """Return the outcome of every trial among a study's `trials`, in order of number.

    A trial failed if one of its seeds did, was stopped if one of them was, and completed if all of them did;
    otherwise it is yet to end.
    """
    by_trial: dict[int, list[dict[str, Any]]] = {}
    for row in trials.to_pylist():
        by_trial.setdefault(row["trial"], []).append(row)
    return [_outcome(plan, rows) for rows in by_trial.values()]


def epoch_means(
    epochs: pa.Table, plan: SweepPlan, metric: str, first_epoch: int = 0
) -> dict[int, dict[int, float]]:
    """Return a metric of a study's `epochs`, by trial and epoch: the mean over the seeds, if all have it."""
    found: dict[int, dict[int, list[float]]] = {}
    for row in epochs.to_pylist():
        value = row[f"metric.{metric}"]
        if value is not None and row["epoch"] >= first_epoch:
            found.setdefault(row["trial"], {}).setdefault(row["epoch"], []).append(value)
    return {
        trial: {epoch: sum(values) / plan.seeds for epoch, values in own.items() if len(values) == plan.seeds}
        for trial, own in found.items()
    }


def _outcome(plan: SweepPlan, rows: Sequence[Mapping[str, Any]]) -> Outcome:
    first = rows[0]
    status = _status(plan.seeds, [row["status"] for row in rows])
    errors = [row["error"] for row in rows if row["error"] is not None]
    names = [name.removeprefix("metric.") for name in first if name.startswith("metric.")]
    over = {name: summarise(row[f"metric.{name}"] for row in rows) for name in names}
    ended = status in FINAL_STATUSES
    return Outcome(
        trial=first["trial"],
        status=status,
        values={name: first[f"hp.{name}"] for name in plan.space.names if first[f"hp.{name}"] is not None},
        metrics={name: found for name, found in over.items() if found is not None and found.n == plan.seeds},
        error=errors[0] if errors else None,
        open_seeds=tuple(row["seed"] for row in rows if ended and row["status"] not in FINAL_STATUSES),
    )


def _status(seeds: int, found: Sequence[Status]) -> Status:
    for status in ("failed", "stopped"):
        if status in found:
            return status
    if found.count("completed") == seeds:
        return "completed"
    return "running" if "running" in found else "interrupted"
