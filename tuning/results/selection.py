"""Selection after the fact: which trials of a study are best on the validation split, by the store."""

from collections.abc import Sequence
from dataclasses import dataclass

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.errors import SweepFailed
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.planning.plan import SweepPlan, plan_of
from contrasweep.tuning.results.conditions import Condition, parse_condition
from contrasweep.tuning.results.pareto import pareto_front
from contrasweep.tuning.results.trials import Outcome, outcomes
from contrasweep.tuning.statistics import summarise
from contrasweep.tuning.store import ResultsStore

RULE = "highest {metric} at the last epoch among completed trials"


@dataclass(frozen=True)
class SelectedTrial:
    """A trial that was selected: its values, its experiment, its score and that of its untrained encoder.

    Scores are means over the search's `seeds`; `std` is the sample standard deviation of `score` over them.
    `on_front` says whether it is on the Pareto front of a search with several metrics, and `rule` by which
    rule the first of a selection was taken.
    """

    study: str
    trial: int
    values: dict[str, Scalar]
    experiment: Experiment
    metric: str
    score: float
    untrained: float | None
    metrics: dict[str, float]
    std: float | None = None
    seeds: int = 1
    on_front: bool = False
    rule: str = ""

    @property
    def beats_untrained(self) -> bool:
        """Whether training improved the score over the encoder it started from."""
        return self.untrained is None or self.score > self.untrained


def best_trials(
    store: ResultsStore, study: str, top: int | None = 1, where: Sequence[str] = ()
) -> list[SelectedTrial]:
    """Return the `top` completed trials with the highest value of the study's metric, best first.

    Of equal scores, the earlier trial comes first. Where the study has several metrics, those on the Pareto
    front come before all others, by the first metric.

    Args:
        store: of the study.
        study: its name.
        top: how many; None gives the best one, or the whole Pareto front.
        where: conditions such as `val.colour_mse>=2000`; a trial that breaks one does not count.

    Raises:
        InputError: a condition is none, or on an unknown metric.
        SweepFailed: no trial of the study has completed, or none of those keeps the conditions.
        StoreError: there is no such study.
    """
    record = store.study(study)
    plan = plan_of(record, store.location.uri)
    conditions = [parse_condition(text, record.columns.metrics) for text in where]
    done = _candidates(store, plan)
    if not done:
        raise SweepFailed(f"no trial of study {study} has completed yet, so there is no best one")
    kept = [one for one in done if all(_keeps(one, condition) for condition in conditions)]
    if not kept:
        wanted = " and ".join(map(str, conditions))
        raise SweepFailed(f"none of the {len(done)} completed trials of study {study} has {wanted}")
    front = _front(plan, kept)
    kept.sort(key=lambda one: (one.trial not in front, -one.metrics[plan.metric].mean, one.trial))
    if top is None:
        top = len(front) or 1
    controls = untrained_scores(store, study, plan.metric)
    rule = _rule(plan, conditions)
    return [_selected(plan, one, controls, one.trial in front, rule) for one in kept[:top]]


def front_trials(store: ResultsStore, plan: SweepPlan) -> frozenset[int]:
    """Return the completed trials on the Pareto front; none where the study has one metric."""
    return _front(plan, _candidates(store, plan))


def untrained_scores(store: ResultsStore, study: str, metric: str) -> dict[tuple[int, int], float]:
    """Return the score of the untrained encoder (epoch 0) by (trial, seed)."""
    rows = store.epochs(study).select(["trial", "seed", "epoch", f"metric.{metric}"]).to_pylist()
    scores = {(row["trial"], row["seed"]): row[f"metric.{metric}"] for row in rows if row["epoch"] == 0}
    return {key: score for key, score in scores.items() if score is not None and score == score}


def _candidates(store: ResultsStore, plan: SweepPlan) -> list[Outcome]:
    return [
        one
        for one in outcomes(store.trials(plan.name), plan)
        if one.status == "completed" and all(metric in one.metrics for metric in plan.metrics)
    ]


def _front(plan: SweepPlan, candidates: Sequence[Outcome]) -> frozenset[int]:
    if len(plan.metrics) == 1:
        return frozenset()
    points = [[one.metrics[metric].mean for metric in plan.metrics] for one in candidates]
    return frozenset(candidates[place].trial for place in pareto_front(points))


def _keeps(one: Outcome, condition: Condition) -> bool:
    return condition.metric in one.metrics and condition.holds(one.metrics[condition.metric].mean)


def _rule(plan: SweepPlan, conditions: Sequence[Condition]) -> str:
    mean = f" (mean of {plan.seeds} seeds)" if plan.seeds > 1 else ""
    front = f" and on the Pareto front of {', '.join(plan.metrics)}" if len(plan.metrics) > 1 else ""
    where = "".join(f", {condition}" for condition in conditions)
    return RULE.format(metric=plan.metric + mean) + front + where


def _selected(
    plan: SweepPlan, one: Outcome, controls: dict[tuple[int, int], float], on_front: bool, rule: str
) -> SelectedTrial:
    score = one.metrics[plan.metric]
    untrained = summarise(value for (trial, _), value in controls.items() if trial == one.trial)
    return SelectedTrial(
        study=plan.name,
        trial=one.trial,
        values=dict(one.values),
        experiment=plan.experiment_of(one.values),
        metric=plan.metric,
        score=score.mean,
        untrained=None if untrained is None else untrained.mean,
        metrics={name: found.mean for name, found in one.metrics.items()},
        std=score.std,
        seeds=plan.seeds,
        on_front=on_front,
        rule=rule,
    )
