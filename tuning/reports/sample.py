"""Choose the trials that a figure draws: all of them, or a fixed sample that the page mentions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from contrasweep.tuning.results.study import StudyData, TrialResult
from contrasweep.tuning.results.trials import Curve, Floats

BEST_SHARE = 0.1
"""The share of the drawn trials that are the best ones; the others are evenly spaced by number."""
MAX_POINTS = 100
"""A longer learning curve is thinned to this many epochs, including the first and the last."""


@dataclass(frozen=True)
class Sample:
    """The trials that a figure draws, and a sentence that says which; the sentence is empty for all."""

    trials: Sequence[TrialResult]
    said: str


def sampled(data: StudyData, trials: Sequence[TrialResult], limit: int) -> Sample:
    """Return at most `limit` of the `trials`: some of the best, and others evenly spaced by number."""
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
    """Return the epochs and scores of a curve, at most `MAX_POINTS` of each."""
    if len(curve.epochs) <= MAX_POINTS:
        return curve.epochs, curve.scores
    places = np.unique(np.linspace(0, len(curve.epochs) - 1, MAX_POINTS).round().astype(int))
    return curve.epochs[places], curve.scores[places]
