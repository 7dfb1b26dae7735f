"""The trials that a surrogate learns from: with a final score, or stopped and with an estimated one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from contrasweep.tuning.sensitivity import enough
from contrasweep.tuning.sensitivity.axes import Floats
from contrasweep.tuning.sensitivity.observations import Observations

LEAST_CORRELATION: Final = 0.5
"""Below this correlation with the final score, an epoch says too little to estimate the final score from."""


@dataclass(frozen=True)
class ScoredTrials:
    """Trials with a score, in an order that does not depend on how the trials are numbered.

    Attributes:
        codes: values in units, (trials, axes).
        score: final scores.
        estimated: which of them are estimates.
        is_default: which of them ran the defaults (trial 0).
        left_out: ended trials without a score: failed ones, and stopped ones that could not be estimated.
    """

    codes: Floats
    score: Floats
    estimated: NDArray[np.bool_]
    is_default: NDArray[np.bool_]
    left_out: int

    def __len__(self) -> int:
        return len(self.score)


def scored_trials(observations: Observations) -> ScoredTrials:
    """Return the completed trials, and the stopped ones whose last epoch foretells the final score.

    Completed trials alone would show bad regions by their few survivors. A stopped trial's score is estimated
    by least squares of the final score on the score at that epoch, over completed trials; where these are
    fewer than `enough.FIDELITY`, or correlate by less than `LEAST_CORRELATION`, it is left out.
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
