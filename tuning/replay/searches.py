"""Our searches in a simulation: a sampler and a scheduler, as `contrasweep sweep` puts them together."""

from collections.abc import Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.planning.halving import check_halving
from contrasweep.tuning.ray.internals import NO_CONTROLLER
from contrasweep.tuning.ray.scheduler import InOrder, ResumableASHA, scheduler_of
from contrasweep.tuning.replay.comparison import SearchOf
from contrasweep.tuning.replay.recording import Recording
from contrasweep.tuning.replay.request import Setting
from contrasweep.tuning.replay.simulation import Decision, Job
from contrasweep.tuning.replay.workload import Workload
from contrasweep.tuning.search import SearchStudy, sampler_of

PLANNED: Final = 100
"""As many trials are planned as a longer sweep has; the random start of a sampler depends on it."""


def ray_trial(number: int) -> Any:
    """Return what schedulers of Ray, and ours, read of Ray's trials."""
    return SimpleNamespace(trial_id=str(number), config={"request": SimpleNamespace(trial=number)})


class OwnSearch:
    """A search, and the scheduler that stops its trials.

    Args:
        study: the search.
        scheduler: what `scheduler_of` has made for it.
    """

    def __init__(self, study: SearchStudy, scheduler: InOrder | ResumableASHA) -> None:
        self._study = study
        self._scheduler = scheduler

    def next(self) -> Job | None:
        """Return the next proposal."""
        proposal = self._study.ask()
        self._scheduler.on_trial_add(NO_CONTROLLER, ray_trial(proposal.number))
        return Job(proposal.number, proposal.values)

    def report(self, trial: int, epoch: int, score: float) -> Decision:
        """Ask the scheduler, and tell the sampler, in the order of Ray Tune."""
        result = {"epoch": epoch, "score": score}
        decision = self._scheduler.on_trial_result(NO_CONTROLLER, ray_trial(trial), result)
        self._study.report(trial, epoch, score)
        return "go on" if decision == InOrder.CONTINUE else "stop"

    def end(self, trial: int, epoch: int, last: float, final: float | None) -> None:
        """Tell the sampler how a trial ended."""
        self._scheduler.on_trial_remove(NO_CONTROLLER, ray_trial(trial))
        self._study.report(trial, epoch, last)
        if final is None:
            self._study.prune(trial)
        else:
            self._study.complete(trial, final)


def check_settings(settings: Sequence[Setting], recording: Recording) -> None:
    """Raise InputError if a sampler or scheduler cannot search what was recorded."""
    for setting in settings:
        check_halving(setting.halving, setting.rule, recording.epochs)
        sampler_of(setting.sampler).check(recording.space, 1)


def searches_of(
    settings: Sequence[Setting], first: Sequence[Mapping[str, Scalar]] = ()
) -> Mapping[str, SearchOf]:
    """Return our search with each setting, by the setting's name; `first` runs before the proposals."""
    return {setting.name: partial(_search, setting, first) for setting in settings}


def _search(
    setting: Setting, first: Sequence[Mapping[str, Scalar]], workload: Workload, seed: int
) -> OwnSearch:
    recording = workload.recording
    epochs, warmup = recording.epochs, recording.warmup
    study = SearchStudy(
        recording.space,
        sampler=setting.sampler,
        seed=seed,
        trials=PLANNED,
        epochs=epochs,
        warmup=warmup,
        first=first,
    )
    scheduler = scheduler_of(setting.rule, study, epochs=epochs, warmup=warmup, halving=setting.halving)
    return OwnSearch(study, scheduler)
