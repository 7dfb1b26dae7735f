"""The `gp` sampler: Optuna's Gaussian process, which also hears of the trials that were stopped early."""

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
from threadpoolctl import threadpool_limits

from tuning.search.positions import value_at
from tuning.search.quiet import quiet_optuna

COPIES = 4
_SHARES = tuple((copy + 0.5) / COPIES for copy in range(COPIES))


class GaussianProcess(BaseSampler):
    """A Gaussian process over all parameters, those that not every trial has included.

    A trial without a parameter has the same score whatever its value: the process is told so at `COPIES`
    values of its range. What it proposes for a parameter that its proposal switches off is not used. `rest`
    draws the first `startup` trials.

    Optuna's process learns from COMPLETE trials alone. Where two of three trials are stopped early it would
    hardly ever begin, and would go back to where they failed: it is told that a stopped trial did as badly as
    the worst finished one.
    """

    def __init__(
        self,
        joint: Mapping[str, BaseDistribution],
        rest: BaseSampler,
        seed: int,
        startup: int,
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
        worst = _worst(study)
        for other in study.get_trials(deepcopy=False):
            if other.number != trial.number:
                _add(seen, other, search_space, worst)
        asked = storage.get_trial(storage.create_new_trial(held))
        # The matrices are small: a second thread costs more than it gains, and trials need the cores.
        with threadpool_limits(1):
            return self._process.sample_relative(seen, asked, search_space)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Return what `rest` draws, of the first trials and where nothing else is to be chosen."""
        return self._rest.sample_independent(study, trial, param_name, param_distribution)

    def _begins(self, study: Study) -> bool:
        states = [t.state for t in study.get_trials(deepcopy=False)]
        ended = states.count(TrialState.COMPLETE) + states.count(TrialState.PRUNED)
        return TrialState.COMPLETE in states and ended >= self._startup


def _worst(study: Study) -> list[float]:
    """Return the worst value of each objective among the COMPLETE trials."""
    states = (TrialState.COMPLETE,)
    columns = zip(*(t.values for t in study.get_trials(deepcopy=False, states=states)), strict=True)
    maximise = optuna.study.StudyDirection.MAXIMIZE
    return [
        min(column) if direction == maximise else max(column)
        for column, direction in zip(columns, study.directions, strict=True)
    ]


def _add(
    seen: Study, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution], worst: list[float]
) -> None:
    if trial.state not in (TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING):
        return
    running = trial.state is TrialState.RUNNING
    values = trial.values if trial.state is TrialState.COMPLETE else worst
    has_all = search_space.keys() <= trial.params.keys()
    for share in (0.5,) if has_all else _SHARES:
        seen.add_trial(
            create_trial(
                state=TrialState.RUNNING if running else TrialState.COMPLETE,
                values=None if running else values,
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
