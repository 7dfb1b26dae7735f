"""`SearchStudy`: ask for a configuration, tell its result. Optuna proposes; Ray is not involved."""

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import optuna
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from contrasweep.search_spaces import Choice, Range, Scalar, Space
from contrasweep.tuning.errors import InputError, told_to_user, unknown_name
from contrasweep.tuning.experiment.statuses import OPEN, Status
from contrasweep.tuning.search.decision_epochs import EPOCHS, WARMUP
from contrasweep.tuning.search.mirror import CONSTRAINT, MirrorOf, quiet_optuna
from contrasweep.tuning.search.sampler import (
    Possible,
    SpaceSampler,
    distribution,
    every_one,
    keeps,
    sampler_of,
)

NO_VIOLATIONS: Mapping[str, float] = {}
"""Of a trial that breaks no condition, or of a search without conditions."""

logger = logging.getLogger(__name__)

Value = float | Sequence[float | None]

_STATES: Mapping[str, TrialState] = {
    "running": TrialState.RUNNING,
    "interrupted": TrialState.RUNNING,
    "completed": TrialState.COMPLETE,
    "stopped": TrialState.PRUNED,
    "failed": TrialState.FAIL,
}


@dataclass(frozen=True)
class Proposal:
    """A configuration to run: the number of the trial and its active values, fixed ones included."""

    number: int
    values: Mapping[str, Scalar]


@dataclass(frozen=True)
class PastTrial:
    """A trial of the results store.

    `epochs` maps an epoch to the value reported there. `value` is the final value, or one for each objective.
    `violations` says by condition how far the trial breaks it; 0 or less where it keeps it.
    """

    number: int
    values: Mapping[str, Scalar]
    state: Status
    epochs: Mapping[int, float] = field(default_factory=dict)
    value: Value | None = None
    violations: Mapping[str, float] = field(default_factory=dict)

    @property
    def keeps(self) -> bool:
        """Whether the trial breaks no condition."""
        return keeps(self.violations)

    @property
    def unfinished(self) -> bool:
        """Whether the trial has not ended; it goes on when its search is resumed."""
        return self.state in OPEN


class SearchStudy:
    """One search over a space: `ask`, then `report` per epoch, then `complete`, `prune` or `fail`.

    In Optuna, a finished trial is COMPLETE. A trial that was stopped early is PRUNED, with its intermediate
    values. A trial that broke, or with a value that is missing, NaN or infinite, is FAIL. TPE ranks every
    PRUNED trial below every COMPLETE one, so values of different fidelity are never mixed, and every FAIL
    below both (see `search.failures`). A report on a finished trial is ignored, with a warning in the log:
    the first outcome stands.

    A trial may come with violations of conditions, by name: how far it breaks each, above 0 where it does.
    They are Optuna's constraints: samplers look for the best trial among those that break none.

    With several objectives, Optuna does not get the values reported after epochs, because its multi-objective
    samplers refuse them. A PRUNED trial ranks below every COMPLETE one without them.

    Args:
        space: the search space.
        sampler: a name of `SAMPLERS`.
        seed: with one trial at a time, the same seed and results give the same proposals.
        trials: the number of planned trials; a short search has a shorter random start.
        epochs: how long a trial is that nothing stops; None if that is unknown.
        warmup: during how many of its epochs the learning rate rises.
        objectives: the number of values of a finished trial; larger values are better.
        earlier: trials of earlier searches to learn from; they do not count as trials of this one.
        first: configurations that run before the sampler's proposals, after the defaults.
        possible: whether a configuration can be run; others are proposed only if the space has none.
        mirror: makes the copy to which each change of the search is written.

    Raises:
        InputError: the sampler is unknown (with the nearest name), the sampler cannot search this
            space, or `trials` is below 1.
    """

    def __init__(
        self,
        space: Space,
        *,
        sampler: str = "tpe",
        seed: int = 0,
        trials: int = 100,
        epochs: int | None = None,
        warmup: float = 0.0,
        objectives: int = 1,
        earlier: Sequence[PastTrial] = (),
        first: Sequence[Mapping[str, Scalar]] = (),
        possible: Possible = every_one,
        mirror: MirrorOf | None = None,
    ) -> None:
        if trials < 1:
            raise InputError(f"trials: given {trials}; allowed: 1 or more")
        chosen = sampler_of(sampler)
        chosen.check(space, objectives)
        self.space = space
        self._seed = seed
        self._objectives = objectives
        self._last: dict[int, float] = {}
        self._distributions = {parameter.name: distribution(parameter) for parameter in space.searched}
        self._storage = optuna.storages.InMemoryStorage()
        with quiet_optuna():
            self.optuna_study = optuna.create_study(
                storage=self._storage,
                sampler=SpaceSampler(space, chosen, seed, trials, len(earlier), first, possible),
                pruner=optuna.pruners.NopPruner(),
                directions=[StudyDirection.MAXIMIZE] * objectives,
            )
        self.optuna_study.set_user_attr(EPOCHS, epochs)
        self.optuna_study.set_user_attr(WARMUP, warmup)
        # Optuna numbers the earlier trials first; outside this class, the search's own trials begin at 0.
        self._earlier = len(earlier)
        self._mirror = None if mirror is None else mirror(self.optuna_study.directions)
        for past in earlier:
            self._add(self._frozen(past))

    def ask(self) -> Proposal:
        """Return the next trial to run: first the defaults, then the proposals of the sampler."""
        trial = self.optuna_study.ask()
        drawn = suggested(trial, self.space)
        number = trial.number - self._earlier
        self._copy(number)
        return Proposal(number, self.space.complete(drawn))

    def report(self, number: int, epoch: int, value: float | None) -> None:
        """Record the value that trial `number` reached at `epoch`; None counts as NaN.

        Raises:
            InputError: there is no such trial.
        """
        if self._is_running(number):
            reported = math.nan if value is None else float(value)
            self._last[number] = reported
            if self._objectives == 1:
                self._storage.set_trial_intermediate_value(self._trial_id(number), epoch, reported)
                if self._mirror is not None:
                    self._mirror.report(number + self._earlier, epoch, reported)

    def goes_on(self, number: int, epoch: int, value: float) -> bool:
        """Return whether trial `number`, which reports `value` at `epoch`, promises more than a new trial.

        A model of all learning curves says so, see `search.curves`. A value that is not finite says no.
        """
        if not math.isfinite(value):
            return False
        # Workers import this module, and start sooner without the model.
        from contrasweep.tuning.search import curves

        return curves.goes_on(self.optuna_study, self.space, number + self._earlier, epoch, value, self._seed)

    def complete(
        self, number: int, value: Value | None, violations: Mapping[str, float] = NO_VIOLATIONS
    ) -> TrialState:
        """Finish a trial with its final value or values; a value of None, NaN or infinity makes it FAIL."""
        values = self._finite(value)
        if values is None:
            logger.warning("trial %d ended with the value %s: counted as failed", number, value)
            return self.fail(number)
        return self._finish(number, TrialState.COMPLETE, values, violations)

    def prune(self, number: int, violations: Mapping[str, float] = NO_VIOLATIONS) -> TrialState:
        """Finish a trial that was stopped early; a last reported value of NaN or infinity makes it FAIL."""
        if not math.isfinite(self._last.get(number, 0.0)):
            logger.warning("trial %d was stopped at a value that is not finite: counted as failed", number)
            return self.fail(number)
        return self._finish(number, TrialState.PRUNED, None, violations)

    def fail(self, number: int) -> TrialState:
        """Finish a trial that broke."""
        return self._finish(number, TrialState.FAIL, None)

    def trial(self, number: int) -> FrozenTrial:
        """Return Optuna's record of a trial.

        Raises:
            InputError: there is no such trial.
        """
        return self._storage.get_trial(self._trial_id(number))

    @property
    def trials(self) -> list[FrozenTrial]:
        """Optuna's records of the proposed trials, in order; Optuna numbers earlier trials first."""
        return [t for t in self._own_trials() if t.state != TrialState.WAITING]

    @property
    def numbered(self) -> int:
        """How many numbers trials have taken, those of trials that a store lacks included."""
        return len(self._own_trials())

    def restore(self, trials: Iterable[PastTrial]) -> None:
        """Rebuild an empty study from the trials of a store; they keep their numbers.

        A running or interrupted trial is RUNNING again: report to it and finish it as usual. If the store
        lacks a number (a death before the trial's first row), the next `ask` proposes a trial of that number.

        Raises:
            InputError: the study already holds trials, a number is negative or given twice, or a trial does
                not fit this space.
        """
        held = len(self._own_trials())
        if held:
            raise InputError(f"restore: given a study with {held} trials; allowed: an empty one")
        past = sorted(trials, key=lambda trial: trial.number)
        numbers = [trial.number for trial in past]
        if len(set(numbers)) < len(numbers) or any(number < 0 for number in numbers):
            raise InputError(f"restore: given the trial numbers {numbers}; allowed: each once, from 0")
        frozen = {trial.number: self._frozen(trial) for trial in past}
        self._last = {trial.number: trial.epochs[max(trial.epochs)] for trial in past if trial.epochs}
        for number in range(numbers[-1] + 1 if numbers else 0):
            self._add(frozen.get(number) or create_trial(state=TrialState.WAITING))

    def _add(self, trial: FrozenTrial) -> None:
        self.optuna_study.add_trial(trial)
        if self._mirror is not None:
            self._copy(len(self._all_trials()) - 1 - self._earlier)

    def _copy(self, number: int) -> None:
        if self._mirror is not None:
            self._mirror.put(self.trial(number))

    def _frozen(self, past: PastTrial) -> FrozenTrial:
        if past.state not in _STATES:
            raise unknown_name("trial state", past.state, _STATES)
        state = _STATES[past.state]
        epochs = {int(epoch): float(value) for epoch, value in past.epochs.items()}
        values = self._finite(past.value) if state is TrialState.COMPLETE else None
        if state is TrialState.COMPLETE and values is None:
            state = TrialState.FAIL
        if state is TrialState.PRUNED and epochs:
            last = epochs[max(epochs)]
            state = TrialState.PRUNED if math.isfinite(last) else TrialState.FAIL
            values = [last] if state is TrialState.PRUNED and self._objectives == 1 else None
        params = self._searched_values(past)
        return create_trial(
            state=state,
            values=values,
            params=params,
            distributions={name: self._distributions[name] for name in params},
            intermediate_values=epochs if self._objectives == 1 else {},
            constraints=dict(past.violations) if state in (TrialState.COMPLETE, TrialState.PRUNED) else {},
        )

    def _finite(self, value: Value | None) -> list[float] | None:
        """Return one number for each objective, or None if any of them is missing, NaN or infinite."""
        given = [value] if value is None or isinstance(value, float | int) else list(value)
        finite = [float(one) for one in given if one is not None and math.isfinite(one)]
        return finite if len(finite) == len(given) == self._objectives else None

    def _searched_values(self, past: PastTrial) -> dict[str, Scalar]:
        given = {name: value for name, value in past.values.items() if value is not None}
        with told_to_user(f"trial {past.number} does not fit the space: "):
            active = self.space.complete(given)
            extra = [name for name in given if name not in active]
            if extra:
                allowed = ", ".join(active)
                raise ValueError(f"given {', '.join(extra)}; allowed with its values: {allowed}")
            params = {name: value for name, value in active.items() if name in self._distributions}
            for name, value in params.items():
                parameter = self.space[name]
                if not parameter.contains(value):
                    raise ValueError(f"{name}: given {value!r}; allowed: {parameter.describe()}")
        return params

    def _finish(
        self,
        number: int,
        state: TrialState,
        values: list[float] | None,
        violations: Mapping[str, float] = NO_VIOLATIONS,
    ) -> TrialState:
        if not self._is_running(number):
            return self.trial(number).state
        for name, violation in violations.items():
            self._storage.set_trial_system_attr(self._trial_id(number), CONSTRAINT + name, violation)
        self.optuna_study.tell(number + self._earlier, values, state=state)
        self._copy(number)
        return state

    def _is_running(self, number: int) -> bool:
        state = self.trial(number).state
        if state is not TrialState.RUNNING:
            logger.warning("trial %d is %s already: a later report is ignored", number, state.name)
        return state is TrialState.RUNNING

    def _trial_id(self, number: int) -> int:
        study_id = self._storage.get_study_id_from_name(self.optuna_study.study_name)
        try:
            return self._storage.get_trial_id_from_study_id_trial_number(study_id, number + self._earlier)
        except KeyError:
            raise InputError(f"no trial {number}; the study holds {len(self._own_trials())}") from None

    def _own_trials(self) -> list[FrozenTrial]:
        return self._all_trials()[self._earlier :]

    def _all_trials(self) -> list[FrozenTrial]:
        return self.optuna_study.get_trials(deepcopy=False)


def suggested(trial: optuna.Trial, space: Space) -> dict[str, Scalar]:
    """Return the values that Optuna suggests for the searched parameters that are active, parents first."""
    values: dict[str, Scalar] = {}
    for parameter in space.searched:
        if parameter.name in space.active(values):
            values[parameter.name] = _suggest(trial, parameter)
    return values


def _suggest(trial: optuna.Trial, parameter: Choice | Range) -> Scalar:
    name = parameter.name
    if isinstance(parameter, Choice):
        return cast(Scalar, trial.suggest_categorical(name, parameter.choices))
    if parameter.is_integer:
        return trial.suggest_int(name, int(parameter.low), int(parameter.high), log=parameter.is_log)
    return trial.suggest_float(name, parameter.low, parameter.high, log=parameter.is_log)
