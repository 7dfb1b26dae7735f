"""The best default of a method over several datasets: one configuration that is good on all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.sensitivity.axes import Floats, default_row, values_of
from contrasweep.tuning.sensitivity.forest import Forest, spread
from contrasweep.tuning.statistics import normal_interval


@dataclass(frozen=True)
class DatasetGain:
    """The gain of the best default over the present default on one dataset.

    Attributes:
        study: whose surrogate predicts the gain.
        dataset: of the study.
        gain: in the score's units.
        low: lower end of its 95 % interval.
        high: upper end.
        unseen: the gain of the default that the *other* studies choose: an estimate for a new dataset.
    """

    study: str
    dataset: str
    gain: float
    low: float
    high: float
    unseen: float


@dataclass(frozen=True)
class BestDefault:
    """One configuration for several datasets (Probst et al. 2019).

    Attributes:
        method: the method that was searched.
        values: the configuration: the tried one with the highest mean predicted score, where each study's
            scores are measured in its own standard deviations.
        gains: on each dataset.
    """

    method: str
    values: Mapping[str, Scalar]
    gains: tuple[DatasetGain, ...]


def best_default(method: str, studies: Mapping[str, str], forests: Sequence[Forest]) -> BestDefault:
    """Return the best default of studies with one space.

    Args:
        method: the method of all the studies.
        studies: name to dataset, in the order of `forests`; two or more.
        forests: the surrogate of each study.
    """
    axes = forests[0].axes
    default = default_row(axes)
    options = np.concatenate([default[None], *(forest.trials.codes for forest in forests)])
    scaled = np.stack([_scaled(forest, options) for forest in forests])
    chosen = int(np.argmax(scaled.mean(axis=0)))
    gains = []
    for i, (study, dataset) in enumerate(studies.items()):
        others = int(np.argmax(np.delete(scaled, i, axis=0).mean(axis=0)))
        gains.append(_gain(study, dataset, forests[i], default, options[chosen], options[others]))
    return BestDefault(method, values_of(axes, options[chosen]), tuple(gains))


def _scaled(forest: Forest, options: Floats) -> Floats:
    deviation = float(forest.trials.score.std()) or 1.0
    return np.asarray((forest.predict(options) - forest.trials.score.mean()) / deviation)


def _gain(
    study: str, dataset: str, forest: Forest, default: Floats, chosen: Floats, others: Floats
) -> DatasetGain:
    rows = np.stack([default, chosen, others])
    present, gained, unseen = forest.predict(rows)
    halves = forest.predict_halves(rows)
    error = float(spread(halves[:, 1] - halves[:, 0]))
    gain = float(gained - present)
    return DatasetGain(study, dataset, gain, *normal_interval(gain, error), float(unseen - present))
