"""The sampler and scheduler `curves`: both use the final scores that a model of all curves expects."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial
from scipy.stats import norm
from threadpoolctl import threadpool_limits

from contrasweep.search_spaces import Scalar, Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.search.axes import axes_of, draw_codes, strata_of, values_of
from contrasweep.tuning.search.curve_model import CurveModel, fit_settings
from contrasweep.tuning.search.curve_scores import (
    Curve,
    columns_of,
    curves_of,
    epochs_of,
    most_telling,
    scores_of,
    tells,
)
from contrasweep.tuning.search.decision_epochs import WARMUP
from contrasweep.tuning.search.sampler import Draw, Sampler
from contrasweep.tuning.search.tpe import random_start, tpe
from contrasweep.tuning.statistics import Floats

CANDIDATES: Final = 400
LEADERS: Final = 4
NEAR: Final = 25
"""So many candidates lie about each of the leaders."""
STEP: Final = 0.1
"""How far they lie from it, as the standard deviation of a range of length 1."""
KEPT: Final = 0.4
"""The probability that such a candidate keeps one of the leader's values."""
ELSEWHERE: Final = 3
"""One trial in so many is proposed without the model."""
TIMES_AS_MUCH: Final = 3
"""A trial goes on unless a new one promises more than so many times as much. The new one is the best of
hundreds, so its promise is overrated, and a trial that was stopped does not come back."""
FAR: Final = -30.0
"""So many deviations below the best score, the density of the normal distribution nearly underflows."""


class Outlook:
    """What a study expects of its trials and of new ones.

    Trials that run count as if they had ended as expected (`believing`), so that others are proposed.

    Args:
        space: what is searched.
        model: of the study's curves.
        curves: the trials of the study.
        rng: draws the new configurations that are considered.
    """

    def __init__(
        self, space: Space, model: CurveModel, curves: list[Curve], rng: np.random.Generator
    ) -> None:
        self._axes, self._strata = axes_of(space), strata_of(space)
        parents = {parent for axis in self._axes for parent in axis.when}
        # A parent that moved could make another parameter active, and the leader has no value of that one.
        self._movable = [not axis.is_category and axis.name not in parents for axis in self._axes]
        self._rng = rng
        self._codes = np.stack([one.codes for one in curves])
        running = [one for one in curves if one.running]
        if running:
            columns = columns_of(self._axes, np.stack([one.codes for one in running]))
            model = model.believing(columns, np.array([one.number for one in running]))
        self._model = model
        self._seen, _ = model.finals(columns_of(self._axes, self._codes))

    def ranked(self) -> Iterator[tuple[Floats, float]]:
        """Yield new configurations in units, (axes,), with the log of what each promises, best first.

        Those that have been tried are left out.
        """
        drawn = draw_codes(self._axes, self._strata, CANDIDATES, self._rng)
        codes = np.concatenate([drawn, self._near_leaders()])
        tried = (np.nan_to_num(codes[:, None], nan=-1) == np.nan_to_num(self._codes, nan=-1)).all(axis=2)
        codes = codes[~tried.any(axis=1)]
        promise = self.promise(codes)
        for place in np.argsort(-promise, kind="stable"):
            yield codes[place], float(promise[place])

    def promise(self, codes: Floats) -> Floats:
        """Return the logarithm of the expected improvement over the best trial, (n,).

        Args:
            codes: configurations in units, (n, axes).
        """
        mean, deviation = self._model.finals(columns_of(self._axes, codes))
        return log_expected_improvement(mean, deviation, float(self._seen.max()))

    def _near_leaders(self) -> Floats:
        leaders = self._codes[np.argsort(-self._seen, kind="stable")[:LEADERS]]
        codes = np.repeat(leaders, NEAR, axis=0)
        moves = self._rng.normal(0, STEP, codes.shape) * (self._rng.random(codes.shape) >= KEPT)
        for place in np.flatnonzero(self._movable):
            moved = np.clip(codes[:, place] + moves[:, place], 0, 1)
            codes[:, place] = self._axes[place].rounded(moved)
        return codes


def log_expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """Return the logarithm of E[max(score - best, 0)] of normal scores, also where it underflows, (n,)."""
    z = (mean - best) / deviation
    far = z < FAR
    with np.errstate(divide="ignore", invalid="ignore"):
        near = np.log(z * norm.cdf(z) + norm.pdf(z))
        # The first term of the asymptotic series of the bracket: it errs by 3 / z^2.
        tail = norm.logpdf(z) - 2 * np.log(np.abs(z))
    return np.asarray(np.log(deviation) + np.where(far, tail, near))


class CurveSampler(BaseSampler):
    """Proposes the configuration with the largest expected improvement at the end of training.

    The model can be sure of too little too early, and then stays where it is. So another sampler, `rest`,
    proposes the first `startup` trials and one in `ELSEWHERE` of the later ones, as random draws do in BOHB
    (Falkner, Klein and Hutter 2018).
    """

    def __init__(self, space: Space, rest: BaseSampler, seed: int, startup: int) -> None:
        self._space = space
        self._rest = rest
        self._seed = seed
        self._startup = startup

    def ranked(self, study: Study, trial: FrozenTrial) -> Iterator[dict[str, Scalar]]:
        """Yield values that no trial has, most promising first; none where `rest` proposes.

        It also proposes where the model knows too little, and after the last of these.
        """
        if self._is_elsewhere(study):
            return
        axes, rng = axes_of(self._space), np.random.default_rng(self._seed)
        others = [one for one in curves_of(study, axes) if one.number != trial.number]
        # The matrices are small: a second thread costs more than it gains, and trials need the cores.
        with threadpool_limits(1):
            found = outlook_of(study, self._space, others, rng)
            best = [] if found is None else [codes for codes, _ in found.ranked()]
        for codes in best:
            yield values_of(axes, codes)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return the parameters that `rest` draws together."""
        return self._rest.infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the draw of `rest`."""
        return self._rest.sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Return the draw of `rest`."""
        return self._rest.sample_independent(study, trial, param_name, param_distribution)

    def _is_elsewhere(self, study: Study) -> bool:
        tried = sum(bool(t.params) for t in study.get_trials(deepcopy=False))
        return tried < self._startup or np.random.default_rng(self._seed).integers(ELSEWHERE) == 0


def outlook_of(
    study: Study, space: Space, curves: list[Curve], rng: np.random.Generator, asked: int | None = None
) -> Outlook | None:
    """Return what a study expects; None if it knows too little.

    Args:
        study: with one objective.
        space: what it searches.
        curves: its trials.
        rng: draws the new configurations that are considered.
        asked: the trial whose end is asked for, if there is one.
    """
    epochs, warmup = epochs_of(study, curves), float(study.user_attrs.get(WARMUP, 0.0))
    scores = scores_of(curves, axes_of(space), epochs, warmup)
    if scores is None:
        return None
    return Outlook(space, CurveModel(fit_settings(scores), most_telling(scores, asked)), curves, rng)


def goes_on(study: Study, space: Space, number: int, epoch: int, score: float, seed: int) -> bool:
    """Return whether the epochs that a trial has left are worth more than those of a new trial.

    It goes on unless the most promising new configuration has `TIMES_AS_MUCH` times its expected improvement
    over the best trial, each divided by the epochs that it costs. Every trial goes on while scores are all
    alike, and where nothing is searched.

    Args:
        study: with one objective.
        space: what it searches.
        number: of the trial, as Optuna counts.
        epoch: that it has just trained.
        score: what it reports after it; the study may not know it yet.
        seed: for the draw of new configurations.
    """
    axes = axes_of(space)
    curves = curves_of(study, axes)
    epochs = epochs_of(study, curves)
    place = next((place for place, one in enumerate(curves) if one.number == number), None)
    if place is None:
        return True
    own = curves[place]
    scores: Mapping[int, float] = {**own.scores, epoch: score}
    curves[place] = replace(own, scores=scores, running=False)
    if epoch >= epochs or not tells(curves, epoch, epochs):
        return True
    with threadpool_limits(1):
        rng = np.random.default_rng([seed % 2**64, number, epoch])  # NumPy takes no negative seed
        found = outlook_of(study, space, curves, rng, number)
        if found is None:
            return True
        _, new = next(found.ranked(), (own.codes, -np.inf))
        mine = float(found.promise(own.codes[None])[0])
    return bool(mine - np.log(epochs - epoch) + np.log(TIMES_AS_MUCH) >= new - np.log(epochs))


def _check(space: Space, objectives: int) -> None:
    if objectives > 1:
        raise InputError("the sampler curves takes one metric; tpe, gp, random and grid take several")


def _start(space: Space, trials: int) -> Draw:
    startup = random_start(trials)
    return lambda seed, number: CurveSampler(space, tpe(seed, trials), seed, startup)


SAMPLER = Sampler("curves", _start, _check)
