"""What a search has seen of its trials, as the model of learning curves takes it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from contrasweep.tuning.search.axes import Axis, codes_of, design
from contrasweep.tuning.search.curve_model import Floats, Scores
from contrasweep.tuning.search.looks import EPOCHS, looks
from contrasweep.tuning.search.sampler import keeps

FLOOR: Final = -2.5
"""Lower scores count as this: how badly a configuration fails says nothing of where good ones are."""
MOST_SCORES: Final = 600
"""The model takes so many scores at most, the latest of each trial first."""
ALIKE: Final = 0.1
"""Scores after an epoch say nothing while they differ by less than this share of how the latest ones do."""
FEWEST: Final = 4


@dataclass(frozen=True)
class Curve:
    """One trial.

    Attributes:
        number: within the study.
        codes: its configuration in units of the axes, (axes,).
        scores: by epoch; larger is better.
        final: its final score, if it has ended with one.
        running: whether it has not ended.
        worst: whether it failed, or breaks a condition of the search: its scores then do not count.
    """

    number: int
    codes: Floats
    scores: Mapping[int, float]
    final: float | None
    running: bool
    worst: bool


def curves_of(study: Study, axes: tuple[Axis, ...]) -> list[Curve]:
    """Return the trials of a study with one objective; those that wait for their turn are left out."""
    trials = [t for t in study.get_trials(deepcopy=False) if t.state is not TrialState.WAITING and t.params]
    codes = codes_of(axes, [t.params for t in trials])
    return [
        Curve(t.number, row, _finite(t), _final(t), t.state is TrialState.RUNNING, _is_worst(t))
        for t, row in zip(trials, codes, strict=True)
    ]


def epochs_of(study: Study, curves: Sequence[Curve]) -> int:
    """Return how long the trials of a study are: as it was told, else the longest it has seen."""
    told = study.user_attrs.get(EPOCHS)
    return int(told) if told is not None else max((max(one.scores, default=1) for one in curves), default=1)


def scores_of(curves: Sequence[Curve], axes: tuple[Axis, ...], epochs: int) -> Scores | None:
    """Return the scores of trials on the scale of the model; None if they are too few or all alike.

    The final score is often another measure than that after each epoch. The median of their differences
    at the end is taken off it.
    """
    offset = _offset(curves, epochs)
    latest = np.array(
        [value for one in curves if not one.worst and (value := _latest(one, offset)) is not None]
    )
    if len(latest) < FEWEST or np.ptp(latest) == 0:
        return None
    middle, scale = float(np.median(latest)), float(latest.std())
    telling = {epoch for epoch in (*looks(epochs), epochs) if _tells(curves, epoch, scale)}
    rows: list[tuple[int, float, float]] = []
    for place, one in enumerate(curves):
        if one.worst:
            rows.append((place, 1.0, -math.inf))
            continue
        rows += [(place, _share(epoch, epochs), one.scores[epoch]) for epoch in telling & one.scores.keys()]
        if one.final is not None:
            rows.append((place, 1.0, one.final - offset))
    rows = sorted(rows, key=lambda row: -row[1])[:MOST_SCORES]
    if not rows:
        return None
    places = np.array([place for place, _, _ in rows])
    numbers = np.array([one.number for one in curves])
    values = np.array([value for _, _, value in rows])
    return Scores(
        columns=columns_of(axes, np.stack([one.codes for one in curves]))[places],
        share=np.array([share for _, share, _ in rows]),
        trial=numbers[places],
        score=np.maximum((values - middle) / scale, FLOOR),
    )


def columns_of(axes: tuple[Axis, ...], codes: Floats) -> Floats:
    """Return configurations as the model sees them, (n, columns)."""
    return design(axes, codes).astype(np.float64)


def tells(curves: Sequence[Curve], epoch: int, epochs: int) -> bool:
    """Return whether scores after an epoch say anything: at first, all trials may score alike."""
    offset = _offset(curves, epochs)
    latest = [value for one in curves if not one.worst and (value := _latest(one, offset)) is not None]
    return len(latest) < FEWEST or _tells(curves, epoch, float(np.std(latest)))


def _tells(curves: Sequence[Curve], epoch: int, scale: float) -> bool:
    there = [one.scores[epoch] for one in curves if epoch in one.scores]
    return len(there) < FEWEST or float(np.std(there)) >= ALIKE * scale


def _share(epoch: int, epochs: int) -> float:
    return math.log(min(epoch, epochs)) / math.log(epochs) if epochs > 1 else 1.0


def _offset(curves: Sequence[Curve], epochs: int) -> float:
    ends = [(one.final, one.scores.get(epochs)) for one in curves]
    found = [final - last for final, last in ends if final is not None and last is not None]
    return float(np.median(found)) if found else 0.0


def _latest(one: Curve, offset: float) -> float | None:
    if one.final is not None:
        return one.final - offset
    return one.scores[max(one.scores)] if one.scores else None


def _finite(trial: FrozenTrial) -> dict[int, float]:
    return {epoch: score for epoch, score in trial.intermediate_values.items() if math.isfinite(score)}


def _final(trial: FrozenTrial) -> float | None:
    return float(trial.values[0]) if trial.state is TrialState.COMPLETE else None


def _is_worst(trial: FrozenTrial) -> bool:
    return trial.state is TrialState.FAIL or not keeps(trial.constraints)
