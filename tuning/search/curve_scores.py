"""The scores of a search so far, in the form that the model of learning curves needs."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from contrasweep.tuning.search.axes import Axis, codes_of, design
from contrasweep.tuning.search.curve_model import Scores
from contrasweep.tuning.search.decision_epochs import EPOCHS, decision_epochs
from contrasweep.tuning.search.sampler import keeps
from contrasweep.tuning.statistics import Floats

FLOOR: Final = -2.5
"""Lower scores count as this: how badly a configuration fails says nothing of where good ones are."""
MOST_SCORES: Final = 600
"""The model predicts from so many scores at most: the cost grows with their third power."""
FARTHEST: Final = 40
"""The scale of scores counts none as further below the median than so many times what the upper quartile is
above it."""
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


def scores_of(
    curves: Sequence[Curve], axes: tuple[Axis, ...], epochs: int, warmup: float = 0.0
) -> Scores | None:
    """Return the scores of trials on the scale of the model; None if they are too few or all alike.

    The final score is often another measure than that after each epoch. The median of their differences
    at the end is taken off it.

    Args:
        curves: the trials.
        axes: of the space that is searched.
        epochs: how long a trial is that nothing stops.
        warmup: during how many of them the learning rate rises.
    """
    offset = _offset(curves, epochs)
    latest = _latest_scores(curves, offset)
    if len(latest) < FEWEST or np.ptp(latest) == 0:
        return None
    middle, scale = float(np.median(latest)), scale_of_scores(latest)
    modelled = {*decision_epochs(epochs), *decision_epochs(epochs, warmup), epochs}
    telling = {epoch for epoch in modelled if _tells(curves, epoch, scale)}
    rows = [
        (place, _share(epoch, epochs), score)
        for place, one in enumerate(curves)
        for epoch, score in _rows_of(one, telling, epochs, offset)
    ]
    if not rows:
        return None
    rows.sort(key=lambda row: -row[1])
    places = np.array([place for place, _, _ in rows])
    numbers = np.array([one.number for one in curves])
    values = np.array([value for _, _, value in rows])
    return Scores(
        columns=columns_of(axes, np.stack([one.codes for one in curves]))[places],
        share=np.array([share for _, share, _ in rows]),
        trial=numbers[places],
        score=np.maximum((values - middle) / scale, FLOOR),
    )


def scale_of_scores(latest: Floats) -> float:
    """Return the standard deviation of scores, of which extremely low ones count as less low.

    A loss that diverges would otherwise make all other scores look alike.

    Args:
        latest: the latest score of each trial, (trials,).
    """
    middle, upper = np.quantile(latest, [0.5, 0.75])
    low = middle - FARTHEST * (upper - middle)
    return float((np.maximum(latest, low) if upper > middle else latest).std())


def most_telling(scores: Scores, asked: int | None = None) -> Scores:
    """Return `MOST_SCORES` of the scores at most: those from which the model predicts.

    All scores of the trial that is asked about are among them. Then come the latest scores of other trials,
    by turns the best one that is left, and any one. Earlier scores come last.

    Args:
        scores: as `scores_of` gives them: the latest of each trial first.
        asked: the trial whose end is asked for.
    """
    if len(scores) <= MOST_SCORES:
        return scores
    own = np.flatnonzero(scores.trial == asked)
    latest = np.unique(scores.trial, return_index=True)[1]
    best_first = latest[np.argsort(-scores.score[latest], kind="stable")]
    mixed = np.random.default_rng(0).permutation(latest)
    in_turn = np.stack([best_first, mixed], axis=1).ravel()
    order = dict.fromkeys(np.concatenate([own, in_turn, np.arange(len(scores))]).tolist())
    return scores.at(sorted(list(order)[:MOST_SCORES]))


def columns_of(axes: tuple[Axis, ...], codes: Floats) -> Floats:
    """Return configurations as the model sees them, (n, columns)."""
    return design(axes, codes).astype(np.float64)


def tells(curves: Sequence[Curve], epoch: int, epochs: int) -> bool:
    """Return whether scores after an epoch say anything: at first, all trials may score alike."""
    latest = _latest_scores(curves, _offset(curves, epochs))
    return len(latest) < FEWEST or _tells(curves, epoch, scale_of_scores(latest))


def _tells(curves: Sequence[Curve], epoch: int, scale: float) -> bool:
    there = [one.scores[epoch] for one in curves if epoch in one.scores]
    return len(there) < FEWEST or float(np.std(there)) >= ALIKE * scale


def _rows_of(one: Curve, telling: Collection[int], epochs: int, offset: float) -> Iterator[tuple[int, float]]:
    """Yield the scores of a trial that the model takes, each with its epoch."""
    if one.worst:
        yield epochs, -math.inf
        return
    yield from ((epoch, score) for epoch, score in one.scores.items() if epoch in telling)
    last = max(one.scores, default=0)
    # Another scheduler may have stopped it after an epoch that is not among those of the model.
    if not one.running and last not in telling and last > min(telling, default=epochs):
        yield last, one.scores[last]
    if one.final is not None:
        yield epochs, one.final - offset


def _share(epoch: int, epochs: int) -> float:
    return math.log(min(epoch, epochs)) / math.log(epochs) if epochs > 1 else 1.0


def _offset(curves: Sequence[Curve], epochs: int) -> float:
    ends = [(one.final, one.scores.get(epochs)) for one in curves]
    found = [final - last for final, last in ends if final is not None and last is not None]
    return float(np.median(found)) if found else 0.0


def _latest_scores(curves: Sequence[Curve], offset: float) -> Floats:
    """Return the latest score of each trial that has one and is not among the worst."""
    found = []
    for one in curves:
        if one.worst:
            continue
        if one.final is not None:
            found.append(one.final - offset)
        elif one.scores:
            found.append(one.scores[max(one.scores)])
    return np.array(found)


def _finite(trial: FrozenTrial) -> dict[int, float]:
    return {epoch: score for epoch, score in trial.intermediate_values.items() if math.isfinite(score)}


def _final(trial: FrozenTrial) -> float | None:
    return float(trial.values[0]) if trial.state is TrialState.COMPLETE else None


def _is_worst(trial: FrozenTrial) -> bool:
    return trial.state is TrialState.FAIL or not keeps(trial.constraints)
