"""What analyses of stored searches refuse: conditions that they do not know, and seeds that are the same."""

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment.conditions import in_words
from contrasweep.tuning.store import ResultsStore, StudyRecord


def refuse_conditions(record: StudyRecord) -> None:
    """Raise InputError if the best trial of a search keeps conditions: analyses choose by scores alone."""
    if keep := record.require_search().keep:
        raise InputError(
            f"study {record.name} searched with --keep {in_words(keep)!r}, and this analysis chooses by "
            "scores alone; give a study without --keep"
        )


def refuse_same_seeds(store: ResultsStore, again: str, study: str) -> None:
    """Raise InputError if `again`, which is to say what other seeds change, has a seed of `study`."""
    shared = sorted(_seeds(store, again) & _seeds(store, study))
    if shared:
        raise InputError(
            f"--again {again}: it trained on seed {shared[0]}, as {study} did; give a study of the same "
            "configurations on another one (--set seed=N)"
        )


def _seeds(store: ResultsStore, study: str) -> set[int]:
    return set(store.trials(study)["seed"].to_pylist())
