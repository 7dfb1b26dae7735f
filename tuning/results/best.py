"""What the best trial of a study is: one definition for progress, summaries, reports and files."""

from collections.abc import Mapping

RULE = "highest {metric} at the last epoch among completed trials"
"""What best means, wherever a best trial is named; of equal ones, the earliest."""


def best_name(metric: str) -> str:
    """Return what a best score is called: `best final val.accuracy`."""
    return f"best final {metric}"


def best_order(trial: int, score: float) -> tuple[float, int]:
    """Return the key that sorts completed trials by their final scores, the best first."""
    return -score, trial


def best_final(scores: Mapping[int, float]) -> tuple[int, float] | None:
    """Return the best of completed trials, and its score, from their final scores; None of none."""
    return min(scores.items(), key=lambda one: best_order(*one), default=None)
