"""The schedulers of a sweep: ASHA with rungs that are filled again from the store, the model of curves, both.

All pass on that Tune begins a trial again.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.schedulers import AsyncHyperBandScheduler, FIFOScheduler

from contrasweep.tuning.experiment.schedulers import Scheduler, stops_by_curves, stops_by_rank
from contrasweep.tuning.planning.halving import Halving
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.ray.internals import NO_CONTROLLER, take_off_rungs
from contrasweep.tuning.ray.out_of_memory import alone_if_gpu_was_full
from contrasweep.tuning.search import PastTrial, SearchStudy
from contrasweep.tuning.search.decision_epochs import decision_epochs

Again = Callable[[Trial], object]
"""Called with a trial whose worker failed, after the worker's end and before Tune begins the trial again."""


class InOrder(FIFOScheduler):
    """Every trial runs to its end."""

    def __init__(self, again: Again = lambda trial: None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._again = again

    def on_trial_error(self, tune_controller: Any, trial: Trial) -> None:
        """Pass on that a worker has failed."""
        super().on_trial_error(tune_controller, trial)
        self._again(trial)

    def was_to_stop(self, trial: PastTrial) -> bool:
        """Return whether a trial, whose driver died, is to stop after its last epoch, which is a rung."""
        return False


class ByCurves(InOrder):
    """A trial is stopped when a new one promises more for the same epochs, see `search.curves`.

    Args:
        study: the search, which knows the curves of all trials.
        looks: the epochs after which trials are looked at.
        again: called with a trial that Tune begins again.
    """

    def __init__(self, study: SearchStudy, looks: Collection[int], again: Again = lambda trial: None) -> None:
        super().__init__(again)
        self._study = study
        self._looks = looks

    def __getstate__(self) -> dict[str, Any]:
        """Pickle nothing: Ray pickles its scheduler for a restore that we never use."""
        return {}

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> str:
        """Say whether a trial goes on after an epoch, which the study does not know yet.

        A trial that goes on from an older checkpoint reports epochs again: it was looked at after those. One
        whose worker died may miss an epoch: it is looked at after the next.
        """
        epoch, number = int(result["epoch"]), trial.config["request"].trial
        known = max(self._study.trial(number).intermediate_values, default=0)
        if not any(known < look <= epoch for look in self._looks):
            return self.CONTINUE
        return self.CONTINUE if self._study.goes_on(number, epoch, float(result["score"])) else self.STOP

    def was_to_stop(self, trial: PastTrial) -> bool:
        """Return whether a new trial promises more than one whose driver died after a look."""
        last = max(trial.epochs)
        return last in self._looks and not self._study.goes_on(trial.number, last, trial.epochs[last])


class ResumableASHA(AsyncHyperBandScheduler):
    """Asynchronous successive halving over epochs, on the `score` of each report (larger is better).

    Args:
        epochs: the epochs of a trial that is not stopped.
        warmup: the epochs during which the learning rate rises.
        past: for each trial that ended before this sweep was resumed, its scores by epoch.
        interrupted: for each trial that will go on, by its number, its scores by epoch.
        halving: when trials are compared, and how many go on.
        again: called with a trial that Tune begins again.
        curves: stops trials as well; None: no one else does.
    """

    def __init__(
        self,
        epochs: int,
        warmup: float,
        past: list[Mapping[int, float]],
        interrupted: Mapping[int, Mapping[int, float]],
        halving: Halving,
        again: Again = lambda trial: None,
        curves: ByCurves | None = None,
    ) -> None:
        super().__init__(
            time_attr="epoch",
            metric="score",
            mode="max",
            max_t=epochs,
            grace_period=halving.grace_period(epochs, warmup),
            reduction_factor=halving.eta,
        )
        self._again = again
        self._curves = curves
        self._interrupted = {number: _stand_in(f"interrupted-{number}") for number in interrupted}
        self._gone_on: dict[str, Any] = {}
        for number, scores in enumerate(past):
            self._replay(_stand_in(f"past-{number}"), scores)
        for number, scores in interrupted.items():
            self._replay(self._interrupted[number], scores)

    def on_trial_add(self, tune_controller: Any, trial: Trial) -> None:
        """Admit a trial. One that goes on has a new Ray id, and keeps its scores at the rungs."""
        number = trial.config["request"].trial
        if number in self._interrupted:
            self._gone_on[trial.trial_id] = self._interrupted[number]
        else:
            super().on_trial_add(tune_controller, trial)

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> str:
        """Say whether a trial goes on after an epoch."""
        known = self._gone_on.get(trial.trial_id, trial)
        decision = super().on_trial_result(tune_controller, known, result)
        if decision == self.CONTINUE and self._curves is not None:
            return self._curves.on_trial_result(tune_controller, trial, result)
        return decision

    def on_trial_complete(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> None:
        """Forget a trial that has ended; one that had gone on was never admitted under its Ray id."""
        if self._gone_on.pop(trial.trial_id, None) is None:
            super().on_trial_complete(tune_controller, trial, result)

    def on_trial_remove(self, tune_controller: Any, trial: Trial) -> None:
        """Forget a trial that Tune takes back, likewise."""
        if self._gone_on.pop(trial.trial_id, None) is None:
            super().on_trial_remove(tune_controller, trial)

    def on_trial_error(self, tune_controller: Any, trial: Trial) -> None:
        """Pass on that a worker has failed."""
        super().on_trial_error(tune_controller, trial)
        self._again(trial)

    def was_to_stop(self, trial: PastTrial) -> bool:
        """Return whether a trial whose driver died is to stop after its last epoch, which is a rung.

        It is compared with all others of the store, also with those that were interrupted as well.
        """
        own = self._interrupted[trial.number]
        take_off_rungs(self, own.trial_id)
        if self._replay(own, trial.epochs) == self.STOP:
            return True
        return self._curves is not None and self._curves.was_to_stop(trial)

    def _replay(self, stand_in: Any, scores: Mapping[int, float]) -> str:
        """Report the scores of a trial of an earlier driver; return what is decided after the last."""
        super().on_trial_add(NO_CONTROLLER, stand_in)
        decision = self.CONTINUE
        for epoch in sorted(scores):
            result = {"epoch": epoch, "score": scores[epoch]}
            decision = super().on_trial_result(NO_CONTROLLER, stand_in, result)
        return decision


def _stand_in(name: str) -> Any:
    """Return what ASHA reads of a trial: its name at the rungs."""
    return SimpleNamespace(trial_id=name)


def scheduler_of(
    name: Scheduler,
    study: SearchStudy,
    *,
    epochs: int,
    warmup: float,
    halving: Halving,
    past: Sequence[PastTrial] = (),
    again: Again = lambda trial: None,
) -> InOrder | ResumableASHA:
    """Return the scheduler of a search.

    Args:
        name: which one.
        study: the search.
        epochs: the epochs of a trial that is not stopped.
        warmup: the epochs during which the learning rate rises.
        halving: when `asha` compares trials, and how many go on.
        past: the trials that began before this sweep was resumed.
        again: called with a trial that Tune begins again.
    """
    if name == "none":
        return InOrder(again)
    curves = ByCurves(study, decision_epochs(epochs, warmup), again) if stops_by_curves(name) else None
    if curves is not None and not stops_by_rank(name):
        return curves
    return ResumableASHA(
        epochs,
        warmup,
        past=[trial.epochs for trial in past if not trial.unfinished],
        interrupted={trial.number: trial.epochs for trial in past if trial.unfinished},
        halving=halving,
        again=again,
        curves=curves,
    )


def scheduler_for(plan: SweepPlan, study: SearchStudy, past: Sequence[PastTrial]) -> InOrder | ResumableASHA:
    """Return the scheduler of a sweep.

    Args:
        plan: the plan of the sweep.
        study: its search.
        past: the trials of earlier drivers.
    """
    return scheduler_of(
        plan.search.scheduler,
        study,
        epochs=plan.experiment.epochs,
        warmup=plan.experiment.schedule.warmup_epochs,
        halving=plan.halving,
        past=past,
        again=alone_if_gpu_was_full(plan.resources),
    )
