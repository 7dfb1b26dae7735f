"""Gains from tuning over the defaults, alone and over several datasets, and the room around the best.

Gains and best defaults follow Probst et al. (2019).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.search.axes import Axis, changes, default_row, draw_codes, values_of
from contrasweep.tuning.sensitivity.forest import Forest, spread
from contrasweep.tuning.statistics import Floats, Ints, normal_interval

DRAWS: Final = 2000


@dataclass(frozen=True)
class Gain:
    """The gain in score over the defaults.

    Attributes:
        parameter: the one that is tuned while the others keep their defaults; empty if all are tuned.
        gain: expected, in the score's units.
        low, high: its 95 % interval.
        default: the parameter's default; None if all are tuned.
        best: its best value, the others at their defaults; None if all are tuned.
    """

    parameter: str
    gain: float
    low: float
    high: float
    default: Scalar | None
    best: Scalar | None


@dataclass(frozen=True)
class Tunability:
    """Gains that the surrogate predicts.

    Each half of the trials chooses values, and the other half judges the choice. Judged by the trials that
    led to it, a choice looks better than it is. So pure noise gains nothing.

    Attributes:
        parameters: the gain of each parameter that is active under the defaults, largest first.
        jointly: the gain of tuning all parameters.
        default_score: the predicted score of the defaults.
        measured_default: the score of trial 0, which ran the defaults; None if it has no score.
        best: the trials' configuration with the highest predicted score.
    """

    parameters: tuple[Gain, ...]
    jointly: Gain
    default_score: float
    measured_default: float | None
    best: Mapping[str, Scalar]


def tunability(forest: Forest) -> Tunability:
    """Return the gains of tuning that a study's surrogate predicts."""
    axes, trials = forest.axes, forest.trials
    default = default_row(axes)
    gains, everything = [], [trials.codes, draw_codes(axes, forest.strata, DRAWS, np.random.default_rng(0))]
    for index in np.flatnonzero(np.isfinite(default)).tolist():
        axis, options = axes[index], changes(axes, default, index)
        everything.append(options)
        best = axis.value(float(axis.grid[int(np.argmax(forest.predict(options)))]))
        gains.append(Gain(axis.name, *_cross_fitted(forest, default, options), axis.default, best))
    measured = trials.score[trials.is_default & ~trials.estimated]
    return Tunability(
        parameters=tuple(sorted(gains, key=lambda one: -one.gain)),
        jointly=Gain("", *_cross_fitted(forest, default, np.concatenate(everything)), None, None),
        default_score=float(forest.predict(default[None])[0]),
        measured_default=float(measured[0]) if len(measured) else None,
        best=values_of(axes, forest.best),
    )


def _cross_fitted(forest: Forest, default: Floats, options: Floats) -> tuple[float, float, float]:
    """Return the mean gain of the options that one half chooses and the other judges, and its interval."""
    scores = forest.predict_halves(np.concatenate([default[None], options]))
    return _judged(scores, 1 + np.argmax(scores[:, 1:], axis=1))


def _judged(scores: Floats, chosen: Ints) -> tuple[float, float, float]:
    """Return the mean gain over the defaults of what each half chose, judged by the other, and its interval.

    Args:
        scores: predicted by each half, (halves, options); the defaults come first.
        chosen: the number of the option that each half chose, (halves,).
    """
    halves = np.arange(len(chosen))
    # Halves 2i and 2i + 1 share no trial.
    gains = scores[halves, chosen[halves ^ 1]] - scores[:, 0]
    mean = float(gains.mean())
    return mean, *normal_interval(mean, float(spread(gains)))


@dataclass(frozen=True)
class Region:
    """The values of one parameter that are as good as the best, the other parameters at their best.

    As good means a predicted score within one standard error of the best.

    Attributes:
        axis: the parameter.
        best: its value in the best configuration.
        low, high: the ends of the range around `best`; None for a category.
        choices: the categories that are as good; empty for a number.
        share: the share of the search range (in units) or of the categories that is as good.
        score: predicted score over `axis.grid`.
    """

    axis: Axis
    best: Scalar
    low: Scalar | None
    high: Scalar | None
    choices: tuple[Scalar, ...]
    share: float
    score: Floats


@dataclass(frozen=True)
class Robustness:
    """The regions around the best configuration.

    Attributes:
        best: the trials' configuration with the highest predicted score.
        score, error: that prediction, and its standard error.
        regions: one for each parameter that is active there.
    """

    best: Mapping[str, Scalar]
    score: float
    error: float
    regions: tuple[Region, ...]


def robustness(forest: Forest) -> Robustness:
    """Return the robust region of each parameter that a study's surrogate predicts."""
    best = forest.best
    score = float(forest.predict(best[None])[0])
    error = float(spread(forest.predict_halves(best[None]))[0])
    active = np.flatnonzero(np.isfinite(best)).tolist()
    regions = [_region(forest, best, index, score - error) for index in active]
    return Robustness(values_of(forest.axes, best), score, error, tuple(regions))


def _region(forest: Forest, best: Floats, index: int, least: float) -> Region:
    axis = forest.axes[index]
    scores = forest.predict(changes(forest.axes, best, index))
    good = scores >= least
    start = axis.entry(best[index])
    good[start] = True
    own = axis.value(best[index])
    if axis.is_category:
        choices = tuple(axis.value(float(code)) for code in axis.grid[good])
        return Region(axis, own, None, None, choices, float(good.mean()), scores)
    # The unbroken run of good entries around the best one.
    bad = np.flatnonzero(~good)
    first = max(bad[bad < start], default=-1) + 1
    last = min(bad[bad > start], default=len(good)) - 1
    edges = np.concatenate([[0.0], np.cumsum(axis.weights)])
    begin, end = edges[first], edges[last + 1]
    low, high = (axis.grid[first], axis.grid[last]) if axis.has_whole_grid else (begin, end)
    return Region(axis, own, axis.value(float(low)), axis.value(float(high)), (), float(end - begin), scores)


@dataclass(frozen=True)
class DatasetGain:
    """The gain of the best default over the present default on one dataset.

    Attributes:
        study: whose surrogate predicts the gain.
        dataset: of the study.
        gain: in the score's units: of what one half of each study's trials chooses, judged by the other.
        low, high: its 95 % interval.
        unseen: the gain of the default that the studies of all *other* datasets choose: an estimate for a
            new dataset.
        unseen_low, unseen_high: its 95 % interval.
    """

    study: str
    dataset: str
    gain: float
    low: float
    high: float
    unseen: float
    unseen_low: float
    unseen_high: float


@dataclass(frozen=True)
class BestDefault:
    """One configuration that is good on several datasets.

    Attributes:
        method: the method that was searched.
        values: the configuration: the tried one with the highest mean predicted score, where each study's
            scores are measured in its own standard deviations and each dataset counts once.
        gains: on each dataset.
    """

    method: str
    values: Mapping[str, Scalar]
    gains: tuple[DatasetGain, ...]


def best_default(method: str, studies: Mapping[str, str], forests: Sequence[Forest]) -> BestDefault:
    """Return the best default of studies with one space.

    Args:
        method: the method of all the studies.
        studies: name to dataset, in the order of `forests`; of two datasets or more.
        forests: the surrogate of each study.
    """
    axes = forests[0].axes
    default = default_row(axes)
    options = np.concatenate([default[None], *(forest.trials.codes for forest in forests)])
    scores = np.stack([forest.predict_halves(options) for forest in forests])
    # In standard deviations of each study's scores, (studies, halves, options).
    scaled = scores / np.array([float(forest.trials.score.std()) or 1.0 for forest in forests])[:, None, None]
    # A dataset with several studies has no more weight than one with a single study.
    of = np.array([*studies.values()])
    datasets = {dataset: scaled[of == dataset].mean(axis=0) for dataset in studies.values()}
    chosen = np.argmax(_mean(datasets), axis=1)
    gains = []
    for i, (study, dataset) in enumerate(studies.items()):
        others = {name: own for name, own in datasets.items() if name != dataset}
        elsewhere = int(np.argmax(_mean(others).mean(axis=0)))
        unseen = scores[i, :, elsewhere] - scores[i, :, 0]
        mean, error = float(unseen.mean()), float(spread(unseen))
        gains.append(
            DatasetGain(study, dataset, *_judged(scores[i], chosen), mean, *normal_interval(mean, error))
        )
    best = options[int(np.argmax(_mean(datasets).mean(axis=0)))]
    return BestDefault(method, values_of(axes, best), tuple(gains))


def _mean(scores: Mapping[str, Floats]) -> Floats:
    return np.asarray(np.mean([*scores.values()], axis=0))
