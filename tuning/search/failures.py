"""Failed trials in the view of Optuna's samplers, which leave them out."""

from collections.abc import Container
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState


def with_failures(study: Study) -> Study:
    """Return a view of a study in which a failed trial was stopped before its first score.

    Samplers then rank it below all others. Optuna's own leave failed trials out: where every trial fails,
    they see a part of the space that nobody has tried, and propose it again and again. A study without
    failed trials is returned as it is.
    """
    if not any(_failed(trial) for trial in study.get_trials(deepcopy=False)):
        return study
    return Study(study_name=study.study_name, storage=_FailuresStopped(study._storage))  # type: ignore[arg-type]


class _FailuresStopped:
    """Storage of Optuna that shows failed trials as stopped ones without a score."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def get_all_trials(
        self, study_id: int, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        trials = self._storage.get_all_trials(study_id, deepcopy=deepcopy)
        shown = [_stopped(trial) if _failed(trial) else trial for trial in trials]
        return [trial for trial in shown if states is None or trial.state in states]


def _failed(trial: FrozenTrial) -> bool:
    return trial.state is TrialState.FAIL and bool(trial.params)


def _stopped(trial: FrozenTrial) -> FrozenTrial:
    return FrozenTrial(
        number=trial.number,
        state=TrialState.PRUNED,
        value=None,
        datetime_start=trial.datetime_start,
        datetime_complete=trial.datetime_complete,
        params=trial.params,
        distributions=trial.distributions,
        user_attrs=trial.user_attrs,
        system_attrs=trial.system_attrs,
        intermediate_values={},
        trial_id=trial._trial_id,
    )
