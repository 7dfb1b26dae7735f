"""The `gp` sampler: Optuna's Gaussian process, told how all trials rank, those stopped early included."""

from collections.abc import Mapping
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, GPSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial
from scipy.stats import norm, rankdata
from threadpoolctl import threadpool_limits

from contrasweep.search_spaces import Space
from contrasweep.tuning.search.mirror import quiet_optuna
from contrasweep.tuning.search.ranking import standing, value_at
from contrasweep.tuning.search.sampler import Draw, Sampler, varied
from contrasweep.tuning.search.tpe import random_start, tpe

COPIES = 4
_SHARES = tuple((copy + 0.5) / COPIES for copy in range(COPIES))
_SCORED = (TrialState.COMPLETE, TrialState.PRUNED)


class GaussianProcess(BaseSampler):
    """A Gaussian process over all parameters, those that not every trial has included.

    It learns from how trials rank (as normal scores), not from their values: one that collapsed would stretch
    the scale on which the good ones differ, and a stopped one has its place below the finished ones, where
    Optuna's own process does not hear of it. A trial without a parameter has the same score whatever its
    value: the process is told so at `COPIES` values of its range. What it proposes for a parameter that its
    proposal switches off is not used. `rest` draws the first `startup` trials.
    """

    def __init__(
        self, joint: Mapping[str, BaseDistribution], rest: BaseSampler, seed: int, startup: int
    ) -> None:
        self._joint = dict(joint)
        self._rest = rest
        self._startup = startup
        self._process = GPSampler(seed=seed, n_startup_trials=0, warn_independent_sampling=False)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return all parameters, or what `rest` wants for the first trials."""
        if self._begins(study):
            return self._joint
        return self._rest.infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the most promising values."""
        if not self._begins(study):
            return self._rest.sample_relative(study, trial, search_space)
        if not search_space:
            return {}
        storage = optuna.storages.InMemoryStorage()
        with quiet_optuna():
            held = storage.create_new_study(study.directions, study.study_name)
        seen = Study(study_name=study.study_name, storage=storage)
        scores = normal_scores(study)
        for other in study.get_trials(deepcopy=False):
            is_running = other.state is TrialState.RUNNING and other.number != trial.number
            if is_running or other.number in scores:
                _add(seen, other, search_space, scores.get(other.number))
        asked = storage.get_trial(storage.create_new_trial(held))
        # The matrices are small: a second thread costs more than it gains, and trials need the cores. Where
        # the fit of the kernel fails, Optuna warns at length and goes on with its defaults: so be it.
        with threadpool_limits(1), quiet_optuna(optuna.logging.ERROR):
            return self._process.sample_relative(seen, asked, search_space)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Return what `rest` draws, of the first trials and where nothing else is to be chosen."""
        return self._rest.sample_independent(study, trial, param_name, param_distribution)

    def _begins(self, study: Study) -> bool:
        states = [t.state for t in study.get_trials(deepcopy=False)]
        return TrialState.COMPLETE in states and sum(map(states.count, _SCORED)) >= self._startup


def normal_scores(study: Study) -> dict[int, list[float]]:
    """Return a score for each objective of every finished or stopped trial, by its number.

    It is the normal quantile of the trial's place among them (see `standing`), ties sharing theirs: the same
    whatever the scale of the values.
    """
    trials = [t for t in study.get_trials(deepcopy=False) if t.state in _SCORED]
    scores: dict[int, list[float]] = {t.number: [] for t in trials}
    several = len(study.directions) > 1
    for objective in range(len(study.directions)):
        keys = [standing(t, objective if several else None) for t in trials]
        places = {key: place for place, key in enumerate(sorted(set(keys)))}
        ranks = rankdata([places[key] for key in keys])
        for t, rank in zip(trials, ranks, strict=True):
            scores[t.number].append(float(norm.isf((rank - 0.5) / len(trials))))
    return scores


def _add(
    seen: Study, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution], scores: list[float] | None
) -> None:
    """Add a trial with its scores; without any it is running."""
    has_all = search_space.keys() <= trial.params.keys()
    for share in (0.5,) if has_all else _SHARES:
        seen.add_trial(
            create_trial(
                state=TrialState.RUNNING if scores is None else TrialState.COMPLETE,
                values=scores,
                params={
                    name: trial.params[name] if name in trial.params else _at(dist, share)
                    for name, dist in search_space.items()
                },
                distributions=dict(search_space),
            )
        )


def _at(dist: BaseDistribution, share: float) -> Any:
    if isinstance(dist, CategoricalDistribution):
        return dist.choices[int(share * len(dist.choices))]
    assert isinstance(dist, FloatDistribution | IntDistribution), "all that a space's parameters become"
    return value_at(dist, share)


def _start(space: Space, trials: int) -> Draw:
    joint, startup = varied(space.searched), random_start(trials)
    return lambda seed, number: GaussianProcess(joint, tpe(seed, trials), seed, startup)


SAMPLER = Sampler("gp", _start)
