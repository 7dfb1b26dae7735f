"""What analyses of stored searches refuse: conditions, and other seeds that are none or differ in more."""

from typing import Any

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import differing_settings, flat_settings
from contrasweep.tuning.experiment.conditions import in_words
from contrasweep.tuning.store import ResultsStore, StudyRecord


def refuse_conditions(record: StudyRecord) -> None:
    """Raise InputError if the best trial of a search keeps conditions: analyses choose by scores alone."""
    if keep := record.require_search().keep:
        raise InputError(
            f"study {record.name} searched with --keep {in_words(keep)!r}, and this analysis chooses by "
            "scores alone; give a study without --keep"
        )


def refuse_as_other_seeds(store: ResultsStore, again: str, study: str) -> None:
    """Raise InputError if `again`, which is to say what other seeds change, cannot say it of `study`.

    It has a seed of `study`, or differs from it in more than seeds and searched values.
    """
    first, second = store.study(study), store.study(again)
    searched = {one.name for record in (first, second) for one in record.space.searched}
    unknown = {"data_fingerprint"} if not all(map(_fingerprint, (first, second))) else set()
    if differ := differing_settings(_held(first), _held(second), {*searched, *unknown, "seed"}):
        told = ", ".join(f"{name} is {there} there, {here} in {study}" for name, here, there in differ)
        raise InputError(f"--again {again}: it differs from {study} in more than its seeds: {told}")
    shared = sorted(_seeds(store, again) & _seeds(store, study))
    if shared:
        raise InputError(
            f"--again {again}: it trained on seed {shared[0]}, as {study} did; give a study of the same "
            "configurations on another one (--set seed=N)"
        )


def _held(record: StudyRecord) -> dict[str, Any]:
    """Return the settings that hold in every trial."""
    return {**flat_settings(record.experiment.model_dump()), **record.space.fixed}


def _fingerprint(record: StudyRecord) -> str:
    """Return the dataset's fingerprint; studies of earlier versions have none."""
    return record.experiment.data_fingerprint


def _seeds(store: ResultsStore, study: str) -> set[int]:
    return set(store.trials(study)["seed"].to_pylist())
