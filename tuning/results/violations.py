"""How far a trial breaks the conditions of its search: by its final scores, or by the last ones it had."""

from collections.abc import Callable, Collection, Sequence

from contrasweep.tuning.experiment.conditions import Condition
from contrasweep.tuning.methods.metrics import cheap_form
from contrasweep.tuning.results.trials import TrialOutcome
from contrasweep.tuning.statistics import is_number


def violations(
    conditions: Sequence[Condition],
    status: str,
    scores: Callable[[str], float | None],
    reported: Collection[str],
) -> dict[str, float]:
    """Return by condition how far a trial breaks it: above 0 where it does.

    A completed trial is judged by its final scores; one that lacks a score breaks the condition. A trial that
    the scheduler stopped is judged by the last scores that were known, in their cheap form; where these are
    unknown, so is the violation. Failed trials and unfinished ones have none.

    Args:
        conditions: the conditions of the search.
        status: how the trial ended.
        scores: returns the trial's mean of a metric over its seeds; None where it is unknown.
        reported: the metrics that trials of the search report.
    """
    if status == "completed":
        return {str(this): this.violation(scores(this.metric)) for this in conditions}
    if status != "stopped":
        return {}
    last = {this: scores(cheap_form(this.metric, reported)) for this in conditions}
    known = {this: score for this, score in last.items() if is_number(score)}
    return {str(this): this.violation(score) for this, score in known.items()}


def violations_of(
    one: TrialOutcome, conditions: Sequence[Condition], reported: Collection[str]
) -> dict[str, float]:
    """Return the `violations` of a stored trial."""
    return violations(conditions, one.status, one.mean, reported)
