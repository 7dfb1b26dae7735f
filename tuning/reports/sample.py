"""Which of many trials a figure draws: all, or a sample that is the same on every run and is stated."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from contrasweep.tuning.results.study import StudyData, TrialResult
from contrasweep.tuning.results.trials import Curve, Floats

BEST_SHARE = 0.1
"""Of the drawn trials, this share is the best; the rest are evenly spaced over the order of the trials."""
MAX_POINTS = 100
"""A longer learning curve is thinned to as many of its epochs, the first and the last among them."""


@dataclass(frozen=True)
class Sample:
    """The trials that a figure draws, and the sentence that says which; empty if it draws all."""

    trials: Sequence[TrialResult]
    said: str


def sampled(data: StudyData, trials: Sequence[TrialResult], limit: int) -> Sample:
    """Return at most `limit` of the `trials`: the best ones, and of the others every so many."""
    if len(trials) <= limit:
        return Sample(trials, "")
    wanted = {trial.number for trial in trials}
    best = [trial.number for trial in data.ranked if trial.number in wanted][: int(limit * BEST_SHARE)]
    others = [trial for trial in trials if trial.number not in best]
    places = np.linspace(0, len(others) - 1, limit - len(best)).round().astype(int)
    drawn = {others[place].number for place in places} | set(best)
    said = (
        f"Drawn: {len(drawn):,} of {len(trials):,} trials, the {len(best)} best "
        "and the others evenly spaced by number."
    )
    return Sample([trial for trial in trials if trial.number in drawn], said)


def thinned(curve: Curve) -> tuple[Floats, Floats]:
    """Return epochs and scores of a curve, at most `MAX_POINTS` of them."""
    if len(curve.epochs) <= MAX_POINTS:
        return curve.epochs, curve.scores
    places = np.unique(np.linspace(0, len(curve.epochs) - 1, MAX_POINTS).round().astype(int))
    return curve.epochs[places], curve.scores[places]
