"""The Pareto front of a study with an accuracy and a colour error: which trials no other beats in both."""

from collections.abc import Sequence
from dataclasses import dataclass

from contrasweep.tuning.results.pareto import pareto_front
from contrasweep.tuning.results.study import StudyData

ACCURACIES = ("val.balanced_accuracy", "val.accuracy")
COLOUR = "val.colour_mse"


@dataclass(frozen=True)
class Point:
    """A completed trial in the plane of two metrics."""

    trial: int
    first: float
    second: float


@dataclass(frozen=True)
class Front:
    """The trials on the front, by falling first metric; the others; the untrained encoder's two scores."""

    metrics: tuple[str, str]
    members: Sequence[Point]
    others: Sequence[Point]
    untrained: tuple[float, float] | None


def front_of(data: StudyData) -> Front | None:
    """Return the front of a study's completed trials; None if it lacks a metric or no trial has both.

    Both are maximised: a large colour error means that little of the colour is kept. The accuracy is the one
    that the search maximises, or else the balanced one where there is one.
    """
    recorded = data.record.columns.metrics
    accuracies = [name for name in (data.metric, *ACCURACIES) if name in recorded and name != COLOUR]
    if not accuracies or COLOUR not in recorded:
        return None
    metrics = (accuracies[0], COLOUR)
    points = [
        Point(trial.number, trial.metrics[metrics[0]], trial.metrics[metrics[1]])
        for trial in data.trials
        if trial.status == "completed" and all(name in trial.metrics for name in metrics)
    ]
    if not points:
        return None
    places = set(pareto_front([(point.first, point.second) for point in points]))
    members = [points[place] for place in places]
    control = [data.untrained_score(name) for name in metrics]
    return Front(
        metrics=metrics,
        members=sorted(members, key=lambda p: (-p.first, -p.second, p.trial)),
        others=[point for place, point in enumerate(points) if place not in places],
        untrained=None if control[0] is None or control[1] is None else (control[0], control[1]),
    )
