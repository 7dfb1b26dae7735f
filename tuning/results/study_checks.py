"""Checks that studies suit an analysis: no conditions, and "other seeds" differ in the seed alone."""

from typing import Any, Final

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import differing_settings, flat_settings
from contrasweep.tuning.experiment.conditions import in_words
from contrasweep.tuning.store import ResultsStore, StudyRecord

ONLY_MORE_SCORES: Final = ("probes.at_epochs", "probes.metrics", "probes.label_free_views")
"""Settings that add scores, and change none that two studies share."""


def refuse_conditions(record: StudyRecord) -> None:
    """Raise InputError if the best trial of a search keeps conditions: analyses choose by scores alone."""
    if keep := record.require_search().keep:
        raise InputError(
            f"study {record.name} searched with --keep {in_words(keep)!r}, and this analysis chooses by "
            "scores alone; give a study without --keep"
        )


def refuse_as_other_seeds(store: ResultsStore, again: str, study: str) -> None:
    """Raise InputError unless `again` differs from `study` in its seed alone; searched values may differ."""
    if told := differs_beyond_seed(store, again, study):
        raise InputError(f"--again {again}: it differs from {study} in more than `seed`: {told}")
    shared = sorted(_seeds(store, again) & _seeds(store, study))
    if shared:
        raise InputError(
            f"--again {again}: it trained on seed {shared[0]}, as {study} did; give a study of the same "
            "configurations on another one (--set seed=N)"
        )


def differs_beyond_seed(store: ResultsStore, again: str, study: str) -> str:
    """Say in which settings two studies differ besides the seed and what is searched; empty if in none."""
    first, second = store.study(study), store.study(again)
    left_out = {one.name for record in (first, second) for one in record.space.searched}
    left_out |= {"seed", *ONLY_MORE_SCORES}
    if not first.experiment.data_fingerprint or not second.experiment.data_fingerprint:
        left_out.add("data_fingerprint")  # studies of earlier versions have none
    differ = differing_settings(_held(first), _held(second), left_out)
    return ", ".join(f"{name} is {there} there, {here} in {study}" for name, here, there in differ)


def _held(record: StudyRecord) -> dict[str, Any]:
    """Return the settings that hold in every trial; a fixed parameter has its value in the space."""
    settings = flat_settings(record.experiment.model_dump())
    bare = {name.removeprefix("hyperparameters."): value for name, value in settings.items()}
    return {**bare, **record.space.fixed}


def _seeds(store: ResultsStore, study: str) -> set[int]:
    return set(store.trials(study)["seed"].to_pylist())
