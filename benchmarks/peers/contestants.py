"""What users run instead of contrasweep, in the simulation of `tuning.replay`: each as its users set it up.

Every search begins with the defaults of the space, and every scheduler may stop after the first epoch. Syne
Tune is no dependency of ours; without it (`pip install syne-tune xgboost statsmodels`) its rows are left out.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
import optuna
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, SuccessiveHalvingPruner
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import TrialState
from ray.tune.schedulers import ASHAScheduler
from ray.tune.search.optuna import OptunaSearch

from contrasweep.search_spaces import Choice, Scalar, Space
from contrasweep.tuning.planning.halving import Halving
from contrasweep.tuning.ray.scheduler import NO_CONTROLLER
from contrasweep.tuning.replay.searches import ray_trial
from contrasweep.tuning.replay.simulation import Decision, Job, Search
from contrasweep.tuning.search.study import suggested

Configuration = Mapping[str, Scalar]


class PeerOf(Protocol):
    """Returns a new search of a space, over trials of so many epochs, from a seed.

    `first` runs before the proposals, after the defaults.
    """

    def __call__(self, space: Space, epochs: int, seed: int, *, first: Sequence[Configuration]) -> Search: ...


def begun_with(space: Space, first: Sequence[Configuration]) -> list[dict[str, Scalar]]:
    """Return the searched values of the defaults, and of what runs after them."""
    names = {parameter.name for parameter in space.searched}
    return [
        {name: value for name, value in one.items() if name in names} for one in (space.defaults(), *first)
    ]


class RayTune:
    """Ray Tune's `OptunaSearch` with its `ASHAScheduler`, both as they come.

    `sampler` and `halving` replace Optuna's default sampler, and the rungs of Ray's scheduler.
    """

    def __init__(
        self,
        space: Space,
        epochs: int,
        seed: int,
        sampler: BaseSampler | None = None,
        halving: Halving | None = None,
        *,
        first: Sequence[Configuration] = (),
    ) -> None:
        options: dict[str, Any] = {"seed": seed} if sampler is None else {"sampler": sampler}
        self._space = space
        self._search = OptunaSearch(
            lambda trial: suggested(trial, space) and None,
            metric="score",
            mode="max",
            points_to_evaluate=begun_with(space, first),
            **options,
        )
        rungs: dict[str, Any] = {}
        if halving is not None:
            rungs = {"grace_period": halving.grace_period(epochs, 0.0), "reduction_factor": halving.eta}
        self._scheduler = ASHAScheduler(metric="score", mode="max", max_t=epochs, **rungs)
        self._begun = 0

    def next(self) -> Job:
        number = self._begun
        self._begun += 1
        drawn = self._search.suggest(str(number))
        self._scheduler.on_trial_add(NO_CONTROLLER, ray_trial(number))
        return Job(number, self._space.complete(drawn))

    def report(self, trial: int, epoch: int, score: float) -> Decision:
        result = {"training_iteration": epoch, "score": score}
        self._search.on_trial_result(str(trial), result)
        decision = self._scheduler.on_trial_result(NO_CONTROLLER, ray_trial(trial), result)
        return "go on" if decision == ASHAScheduler.CONTINUE else "stop"

    def end(self, trial: int, epoch: int, last: float, final: float | None) -> None:
        score = last if final is None else final
        self._search.on_trial_complete(str(trial), {"training_iteration": epoch, "score": score})
        self._scheduler.on_trial_remove(NO_CONTROLLER, ray_trial(trial))


def hyperband(epochs: int) -> BasePruner:
    """Return Optuna's Hyperband, whose first rung is the first epoch."""
    return HyperbandPruner(min_resource=1, max_resource=epochs)


class OptunaAlone:
    """Optuna with its multivariate TPE and constant liar, and a pruner for trials of so many epochs."""

    def __init__(
        self,
        space: Space,
        epochs: int,
        seed: int,
        pruner: Callable[[int], BasePruner] = hyperband,
        *,
        first: Sequence[Configuration] = (),
    ) -> None:
        self._space = space
        self._study = optuna.create_study(
            # Hyperband deals out its brackets by a hash of this name.
            study_name=f"seed-{seed}",
            direction="maximize",
            sampler=TPESampler(seed=seed, multivariate=True, group=True, constant_liar=True),
            pruner=pruner(epochs),
        )
        for values in begun_with(space, first):
            self._study.enqueue_trial(values)
        self._running: dict[int, optuna.Trial] = {}

    def next(self) -> Job:
        trial = self._study.ask()
        self._running[trial.number] = trial
        return Job(trial.number, self._space.complete(suggested(trial, self._space)))

    def report(self, trial: int, epoch: int, score: float) -> Decision:
        self._running[trial].report(score, epoch)
        return "stop" if self._running[trial].should_prune() else "go on"

    def end(self, trial: int, epoch: int, last: float, final: float | None) -> None:
        ended = self._running.pop(trial)
        if final is None:
            self._study.tell(ended, state=TrialState.PRUNED)
        else:
            self._study.tell(ended, final)


class SyneTune:
    """One of Syne Tune's asynchronous searches with its ASHA, as they come.

    It has no conditions: parameters that a configuration does not use are drawn and ignored.
    """

    def __init__(
        self,
        space: Space,
        epochs: int,
        seed: int,
        kind: str = "ASHACQR",
        *,
        first: Sequence[Configuration] = (),
    ) -> None:
        from syne_tune.optimizer import baselines

        self._space = space
        unused = {one.name: one.default for one in space.searched}
        # Its searchers draw from NumPy's global state as well.
        np.random.seed(seed)  # noqa: NPY002
        self._scheduler = getattr(baselines, kind)(
            _flat(space),
            metric="score",
            time_attr="epoch",
            max_t=epochs,
            do_minimize=False,
            random_seed=seed,
            points_to_evaluate=[{**unused, **values} for values in begun_with(space, first)],
        )
        self._trials: list[Any] = []

    def next(self) -> Job:
        from syne_tune.backend.trial_status import Trial

        number = len(self._trials)
        trial = Trial(number, self._scheduler.suggest().config, datetime.now())
        self._trials.append(trial)
        self._scheduler.on_trial_add(trial)
        return Job(number, self._space.complete(trial.config))

    def report(self, trial: int, epoch: int, score: float) -> Decision:
        decision = self._scheduler.on_trial_result(self._trials[trial], {"score": score, "epoch": epoch})
        return "go on" if decision == "CONTINUE" else "stop"

    def end(self, trial: int, epoch: int, last: float, final: float | None) -> None:
        if final is not None:
            self._scheduler.on_trial_complete(self._trials[trial], {"score": final, "epoch": epoch})


def _flat(space: Space) -> dict[str, Any]:
    from syne_tune import config_space

    found: dict[str, Any] = {}
    for one in space.searched:
        if isinstance(one, Choice):
            found[one.name] = config_space.choice(list(one.choices))
        elif one.is_integer:
            draw = config_space.lograndint if one.is_log else config_space.randint
            found[one.name] = draw(int(one.low), int(one.high))
        else:
            draw = config_space.loguniform if one.is_log else config_space.uniform
            found[one.name] = draw(one.low, one.high)
    return found


PEERS: Mapping[str, PeerOf] = {
    "Ray Tune: OptunaSearch, ASHA": RayTune,
    "Optuna: TPE, Hyperband": OptunaAlone,
    **({"Syne Tune: ASHA with CQR": SyneTune} if find_spec("syne_tune") and find_spec("xgboost") else {}),
}
"""The searches that users run instead, by the name that tables have."""

PEER_SETTINGS: Mapping[str, PeerOf] = {
    **{name: of for name, of in PEERS.items() if of in (RayTune, OptunaAlone)},
    "Ray Tune: one in three goes on": partial(RayTune, halving=Halving(eta=3, grace=1)),
    "Optuna: TPE, successive halving": partial(
        OptunaAlone, pruner=lambda epochs: SuccessiveHalvingPruner(min_resource=1)
    ),
    "Optuna: TPE, median": partial(OptunaAlone, pruner=lambda epochs: MedianPruner()),
}
"""The two searches with other schedulers that a user might give them."""
