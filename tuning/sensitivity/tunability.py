"""Tunability: what tuning gains over the defaults, one parameter at a time and all together (Probst 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.sensitivity.axes import Floats
from contrasweep.tuning.sensitivity.configurations import changes, default_row, values_of
from contrasweep.tuning.sensitivity.forest import Forest, draw_codes, spread

DRAWS: Final = 2000


@dataclass(frozen=True)
class Gain:
    """Gain in score over the defaults.

    Attributes:
        parameter: that is tuned while the others keep their defaults; empty: all of them.
        gain: expected, in the score's units.
        low: lower end of the 95 % interval.
        high: upper end.
        default: the parameter's default; None for all.
        best: its best value there; None for all.
    """

    parameter: str
    gain: float
    low: float
    high: float
    default: Scalar | None
    best: Scalar | None


@dataclass(frozen=True)
class Tunability:
    """Gains from the surrogate. Each half of the trials chooses, and the other half judges the choice: a
    choice judged by the trials that led to it looks better than it is. So pure noise gains nothing.

    Attributes:
        parameters: a gain each, of those active under the defaults, largest first.
        jointly: the gain of tuning all.
        default_score: predicted score of the defaults.
        measured_default: the score of trial 0, which ran them; None where it has none.
        best: configuration with the highest predicted score among the trials.
    """

    parameters: tuple[Gain, ...]
    jointly: Gain
    default_score: float
    measured_default: float | None
    best: Mapping[str, Scalar]


def tunability(forest: Forest) -> Tunability:
    """Return the gains of tuning, by the surrogate of a study."""
    axes, trials = forest.axes, forest.trials
    default = default_row(axes)
    gains, everything = [], [trials.codes, draw_codes(axes, forest.strata, DRAWS, np.random.default_rng(0))]
    for index, axis in enumerate(axes):
        if np.isnan(default[index]):
            continue
        options = changes(axes, default, index)
        everything.append(options)
        gain, low, high = _cross_fitted(forest, default, options)
        best = axis.value(float(axis.grid[int(np.argmax(forest.predict(options)))]))
        gains.append(Gain(axis.name, gain, low, high, axis.default, best))
    gain, low, high = _cross_fitted(forest, default, np.concatenate(everything))
    measured = trials.score[trials.is_default & ~trials.estimated]
    best_row = trials.codes[int(np.argmax(forest.predict(trials.codes)))]
    return Tunability(
        parameters=tuple(sorted(gains, key=lambda one: -one.gain)),
        jointly=Gain("", gain, low, high, None, None),
        default_score=float(forest.predict(default[None])[0]),
        measured_default=float(measured[0]) if len(measured) else None,
        best=values_of(axes, best_row),
    )


def _cross_fitted(forest: Forest, default: Floats, options: Floats) -> tuple[float, float, float]:
    """Mean gain, and its 95 % interval, of the options that each half chooses, judged by the other half."""
    chosen = np.argmax(forest.predict_halves(options), axis=1)
    rows = np.concatenate([default[None], options[chosen]])
    scores = forest.predict_halves(rows)
    halves = np.arange(len(chosen))
    # Halves 2i and 2i + 1 share no trial: each judges the other's choice.
    judged = halves ^ 1
    gains = scores[halves, 1 + judged] - scores[halves, 0]
    mean, error = float(gains.mean()), float(spread(gains))
    return mean, mean - 1.96 * error, mean + 1.96 * error
