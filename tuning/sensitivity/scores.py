"""The trials that the surrogate is fitted on: completed ones, and stopped ones with an estimated score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from contrasweep.tuning.sensitivity import enough
from contrasweep.tuning.sensitivity.axes import Floats
from contrasweep.tuning.sensitivity.observations import Observations

LEAST_CORRELATION: Final = 0.5
"""Below this correlation with the final score, the score after an epoch gives no estimate of it."""


@dataclass(frozen=True)
class ScoredTrials:
    """Trials with a score, in an order that does not depend on how the trials are numbered.

    Attributes:
        codes: values in units, (trials, axes).
        score: final scores.
        estimated: which scores are estimates.
        is_default: which trials ran the defaults (trial 0).
        left_out: the number of ended trials without a score: failed trials, and stopped trials without an
            estimate.
    """

    codes: Floats
    score: Floats
    estimated: NDArray[np.bool_]
    is_default: NDArray[np.bool_]
    left_out: int

    def __len__(self) -> int:
        return len(self.score)


def scored_trials(observations: Observations) -> ScoredTrials:
    """Return the completed trials, and the stopped ones whose last epoch predicts the final score.

    Completed trials alone would show bad regions by their few survivors. The score of a stopped trial is
    estimated by least squares: the completed trials' final scores on their scores at the same epoch. With
    fewer than `enough.FIDELITY` completed trials, or a correlation below `LEAST_CORRELATION`, the stopped
    trial is left out.
    """
    score = observations.score.copy()
    stopped = observations.ending == "stopped"
    last = _last_epochs(observations.curve)
    for epoch in np.unique(last[stopped & (last > 0)]):
        fitted = _line(observations.curve[observations.completed, epoch], score[observations.completed])
        if fitted is not None:
            rows = stopped & (last == epoch)
            score[rows] = fitted[0] + fitted[1] * observations.curve[rows, epoch]
    known = np.flatnonzero(np.isfinite(score))
    keys = np.nan_to_num(observations.codes[known], nan=-1.0)
    order = known[np.lexsort((*keys.T, score[known]))]
    return ScoredTrials(
        codes=observations.codes[order],
        score=score[order],
        estimated=stopped[order],
        is_default=observations.trial[order] == 0,
        left_out=int(np.count_nonzero(observations.over)) - len(known),
    )


def _last_epochs(curve: Floats) -> NDArray[np.int64]:
    known = np.isfinite(curve)
    return np.where(known.any(axis=1), curve.shape[1] - 1 - np.argmax(known[:, ::-1], axis=1), 0)


def _line(early: Floats, final: Floats) -> tuple[float, float] | None:
    both = np.isfinite(early) & np.isfinite(final)
    if np.count_nonzero(both) < enough.FIDELITY or np.ptp(early[both]) == 0 or np.ptp(final[both]) == 0:
        return None
    if np.corrcoef(early[both], final[both])[0, 1] < LEAST_CORRELATION:
        return None
    slope, intercept = np.polyfit(early[both], final[both], 1)
    return float(intercept), float(slope)
