"""The condition on which a search ends early: it no longer gains."""

import math
import re
from dataclasses import dataclass
from typing import Final

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.limits import check_count

NOISE: Final = "noise"
_FORM: Final = re.compile(r"\s*gain\s*<\s*(\S+)\s+for\s+(\d{1,12})\s*")


@dataclass(frozen=True)
class StopWhen:
    """The best final score gained less than `gain` over the last `trials` trials that trained.

    Attributes:
        gain: a difference of the metric; None for the noise of the best score (`results.noise`).
        trials: how many trials must bring too little.
    """

    gain: float | None
    trials: int

    def __str__(self) -> str:
        return f"gain<{NOISE if self.gain is None else f'{self.gain:g}'} for {self.trials}"


def parse_stop_when(text: str) -> StopWhen:
    """Return the condition that `text` states: `gain<noise for 20` or `gain<0.005 for 20`.

    Raises:
        InputError: it is written otherwise, the gain is no number above 0, or there are too many trials.
    """
    found = _FORM.fullmatch(text)
    gain = None if found is None else _gain(found[1])
    if found is None or (gain is not None and not 0 < gain < math.inf):
        allowed = "gain<noise for TRIALS, or gain<NUMBER for TRIALS with a number above 0"
        raise InputError(f"stop-when: given {text!r}; allowed: {allowed}")
    trials = int(found[2])
    check_count("the trials of stop-when", trials)
    return StopWhen(gain, trials)


def _gain(word: str) -> float | None:
    """Return the number; None for the noise, NaN for anything else."""
    if word == NOISE:
        return None
    try:
        return float(word)
    except ValueError:
        return math.nan
