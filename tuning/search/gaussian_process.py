"""The `gp` sampler: Optuna's Gaussian process, fitted to the ranks of all trials, stopped ones included."""

from collections.abc import Mapping
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, GPSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial
from scipy.stats import norm, rankdata
from threadpoolctl import threadpool_limits

from contrasweep.search_spaces import Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.search.failures import with_failures
from contrasweep.tuning.search.mirror import quiet_optuna
from contrasweep.tuning.search.sampler import Draw, Sampler, scale_of, standing, varied
from contrasweep.tuning.search.tpe import random_start, tpe

COPIES = 4
MOST_NUMBERS = 1_000_000
_SHARES = tuple((copy + 0.5) / COPIES for copy in range(COPIES))
_SCORED = (TrialState.COMPLETE, TrialState.PRUNED)


class GaussianProcess(BaseSampler):
    """A Gaussian process over all parameters, also those that not every trial has.

    It learns from the ranks of trials (as normal scores), not from their values. A collapsed trial would
    stretch the scale on which good trials differ. A stopped trial ranks below the finished ones, and a failed
    one below all others, while Optuna's process would ignore both. For a trial without some parameter, the
    process gets `COPIES` copies with values across the range, all with the same score. Values for parameters
    that a proposal switches off are not used. `rest` draws the first `startup` trials.
    """

    def __init__(
        self, joint: Mapping[str, BaseDistribution], rest: BaseSampler, seed: int, startup: int
    ) -> None:
        self._joint = dict(joint)
        self._rest = rest
        self._startup = startup
        self._process = GPSampler(seed=seed, n_startup_trials=0, warn_independent_sampling=False)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return all parameters; for the first trials, those of `rest`."""
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
        study = with_failures(study)
        storage = optuna.storages.InMemoryStorage()
        with quiet_optuna():
            held = storage.create_new_study(study.directions, study.study_name)
        seen = Study(study_name=study.study_name, storage=storage)
        scores, violations = normal_scores(study), normal_violations(study)
        for other in study.get_trials(deepcopy=False):
            is_running = other.state is TrialState.RUNNING and other.number != trial.number
            if is_running or other.number in scores:
                _add(seen, other, search_space, scores.get(other.number), violations.get(other.number, {}))
        asked = storage.get_trial(storage.create_new_trial(held))
        # The matrices are small: a second thread costs more than it gains, and trials need the cores. If the
        # fit of the kernel fails, Optuna warns at length and uses its defaults, which is acceptable.
        with threadpool_limits(1), quiet_optuna(optuna.logging.ERROR):
            return self._process.sample_relative(seen, asked, search_space)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Return the draw of `rest`, for the first trials and for parameters outside the model."""
        return self._rest.sample_independent(study, trial, param_name, param_distribution)

    def _begins(self, study: Study) -> bool:
        states = [t.state for t in study.get_trials(deepcopy=False)]
        return TrialState.COMPLETE in states and sum(map(states.count, _SCORED)) >= self._startup


def normal_scores(study: Study) -> dict[int, list[float]]:
    """Return a score for each objective of every finished or stopped trial, by its number.

    The score is the normal quantile of the trial's rank (see `standing`); ties share a rank. The scale of the
    values does not matter.
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


def normal_violations(study: Study) -> dict[int, dict[str, float]]:
    """Return for every finished or stopped trial by how much it breaks each condition, by its number.

    These too are normal quantiles of ranks, less the quantile of the bound itself: above 0 where the
    condition is broken. A trial of which this is unknown stands at the bound.
    """
    trials = [t for t in study.get_trials(deepcopy=False) if t.state in _SCORED]
    found: dict[int, dict[str, float]] = {t.number: {} for t in trials}
    for name in dict.fromkeys(name for t in trials for name in t.constraints):
        ranks = rankdata([0.0, *(t.constraints.get(name, 0.0) for t in trials)])
        bound, *quantiles = norm.ppf((ranks - 0.5) / len(ranks))
        for t, quantile in zip(trials, quantiles, strict=True):
            found[t.number][name] = float(quantile - bound)
    return found


def _add(
    seen: Study,
    trial: FrozenTrial,
    search_space: Mapping[str, BaseDistribution],
    scores: list[float] | None,
    violations: Mapping[str, float],
) -> None:
    """Add a trial with its scores and violations; a trial without scores is running."""
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
                constraints=dict(violations),
            )
        )


def _at(dist: BaseDistribution, share: float) -> Any:
    if isinstance(dist, CategoricalDistribution):
        return dist.choices[int(share * len(dist.choices))]
    assert isinstance(dist, FloatDistribution | IntDistribution), "a space has no other parameters"
    return scale_of(dist).value(share)


def _start(space: Space, trials: int) -> Draw:
    joint, startup = varied(space.searched), random_start(trials)
    return lambda seed, number: GaussianProcess(joint, tpe(seed, trials), seed, startup)


def _check(space: Space, objectives: int) -> None:
    """Refuse ranges that Optuna's process, which lists all whole numbers of a range, has no memory for."""
    for parameter in space.searched:
        size = parameter.size()
        if size is not None and size > MOST_NUMBERS:
            raise InputError(
                f"the sampler gp takes ranges of at most {MOST_NUMBERS:,} whole numbers, and "
                f"{parameter.name} of {space.origin} has {size:,}; curves and tpe take any range"
            )


SAMPLER = Sampler("gp", _start, _check)
