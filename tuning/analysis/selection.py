"""Selection after the fact: which trials of a study are best on the validation split, by the store."""

from dataclasses import dataclass
from typing import Any

from search_spaces import Scalar
from tuning.config import Experiment
from tuning.errors import SweepFailed
from tuning.plan import SweepPlan, plan_of
from tuning.store import ResultsStore

RULE = "highest {metric} at the last epoch among completed trials"


@dataclass(frozen=True)
class SelectedTrial:
    """A trial that was selected: its values, its experiment, its score and that of its untrained encoder."""

    study: str
    trial: int
    values: dict[str, Scalar]
    experiment: Experiment
    metric: str
    score: float
    untrained: float | None
    metrics: dict[str, float]

    @property
    def beats_untrained(self) -> bool:
        """Whether training improved the score over the encoder it started from."""
        return self.untrained is None or self.score > self.untrained


def best_trials(store: ResultsStore, study: str, top: int = 1) -> list[SelectedTrial]:
    """Return the `top` completed trials with the highest value of the study's metric, best first.

    Of equal scores, the earlier trial comes first.

    Raises:
        SweepFailed: no trial of the study has completed.
        StoreError: there is no such study.
    """
    plan = plan_of(store.study(study), store.location.uri)
    column = f"metric.{plan.metric}"
    rows = store.trials(study).to_pylist()
    done = [row for row in rows if row["status"] == "completed" and _is_number(row[column])]
    if not done:
        raise SweepFailed(f"no trial of study {study} has completed yet, so there is no best one")
    done.sort(key=lambda row: (-row[column], row["trial"]))
    controls = untrained_scores(store, study, plan.metric)
    return [_selected(plan, row, controls.get((row["trial"], row["seed"]))) for row in done[:top]]


def untrained_scores(store: ResultsStore, study: str, metric: str) -> dict[tuple[int, int], float]:
    """Return the score of the untrained encoder (epoch 0) by (trial, seed)."""
    rows = store.epochs(study).select(["trial", "seed", "epoch", f"metric.{metric}"]).to_pylist()
    scores = {(row["trial"], row["seed"]): row[f"metric.{metric}"] for row in rows if row["epoch"] == 0}
    return {key: score for key, score in scores.items() if _is_number(score)}


def _selected(plan: SweepPlan, row: dict[str, Any], untrained: float | None) -> SelectedTrial:
    values = {name: row[f"hp.{name}"] for name in plan.space.names if row[f"hp.{name}"] is not None}
    prefix = "metric."
    metrics = {
        name.removeprefix(prefix): value
        for name, value in row.items()
        if name.startswith(prefix) and value is not None
    }
    return SelectedTrial(
        study=plan.name,
        trial=row["trial"],
        values=values,
        experiment=plan.experiment_of(values),
        metric=plan.metric,
        score=row[f"metric.{plan.metric}"],
        untrained=untrained,
        metrics=metrics,
    )


def _is_number(value: float | None) -> bool:
    return value is not None and value == value
