"""A recorded study as a workload: the predicted scores of any configuration, with the noise of a seed."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.replay.recording import Recording
from contrasweep.tuning.replay.simulation import Run
from contrasweep.tuning.replay.surrogate import Surrogate, fit_surrogate, held_out
from contrasweep.tuning.statistics import Floats

DECIMALS: Final = 6
"""Scores are rounded to so many: trials that all score alike, before they learn, must tie here as well."""


@dataclass(frozen=True)
class Workload:
    """Runs drawn from a recording: a surrogate of its curves, and noise.

    Scores that are shares are predicted on the logistic scale, so that none leaves 0..1. The noise is the
    difference between two seeds of one configuration, by epochs, where the recording has second seeds. Else
    it is what the surrogate leaves unexplained of runs that it was not fitted to, which is more.
    """

    recording: Recording
    surrogate: Surrogate
    predicted: Floats

    @classmethod
    def of(cls, recording: Recording) -> "Workload":
        """Fit the surrogate, and its errors on held-out trials."""
        scores = recording.spread_out(recording.scores)
        return cls(recording, fit_surrogate(recording.columns, scores), held_out(recording.columns, scores))

    def run(self, values: Mapping[str, Scalar], rng: np.random.Generator) -> Run:
        """Return what a configuration would do with another seed."""
        recording = self.recording
        expected = self.surrogate.predict(recording.column_of(values))[0]
        noise = self._noise[rng.integers(len(self._noise))]
        scores = np.round(recording.gathered(expected + noise), DECIMALS)
        final = float(recording.gathered(expected)[-1])
        seconds = float(recording.seconds[rng.integers(len(recording.seconds))])
        return Run(scores[:-1], float(scores[-1]), final, seconds)

    @property
    def seed_noise(self) -> float | None:
        """The standard deviation of a final score over seeds; None without second seeds."""
        pairs = self._pairs
        differences = self.recording.scores[pairs, -1] - self.recording.again[pairs, -1]
        return float(differences.std(ddof=1) / np.sqrt(2)) if self.pairs > 1 else None

    @property
    def pairs(self) -> int:
        """How many trials are known on two seeds."""
        return int(np.count_nonzero(self._pairs))

    @cached_property
    def error(self) -> float:
        """The root mean square error of final scores on held-out trials; it has the noise of a seed in it."""
        predicted = self.recording.gathered(self.predicted)[:, -1]
        return float(np.sqrt(np.mean((predicted - self.recording.scores[:, -1]) ** 2)))

    @property
    def own_error(self) -> float | None:
        """The part of `error` that is not the noise of a seed; None without second seeds."""
        noise = self.seed_noise
        return None if noise is None else float(np.sqrt(max(0.0, self.error**2 - noise**2)))

    @cached_property
    def _noise(self) -> Floats:
        scores = self.recording.spread_out(self.recording.scores)
        if self.seed_noise is None:
            return scores - self.predicted
        pairs = self._pairs
        differences = scores[pairs] - self.recording.spread_out(self.recording.again[pairs])
        # Centred differences of n pairs vary by a factor (n - 1) / n too little.
        count = len(differences)
        return np.asarray((differences - differences.mean(axis=0)) * np.sqrt(count / (count - 1) / 2))

    @property
    def _pairs(self) -> NDArray[np.bool_]:
        return np.asarray(np.isfinite(self.recording.again).all(axis=1))
