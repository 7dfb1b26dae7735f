"""Remove a new study that was refused before its first trial, so that its name is free again."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.store.filesystem import Location, StoreError
from contrasweep.tuning.store.parts import folder
from contrasweep.tuning.store.removal import delete_record


@contextmanager
def removed_if_refused(location: Location, studies: Iterable[str]) -> Iterator[None]:
    """Remove those of the new `studies` that have no row yet, if an InputError ends the `with` block.

    A StoreError removes nothing: another driver may be at work on the study.
    """
    try:
        yield
    except StoreError:
        raise
    except InputError:
        for study in studies:
            _remove_unstarted(location, study)
        raise


def _remove_unstarted(location: Location, study: str) -> None:
    if any(location.files(folder(kind, study), below=True) for kind in ("trials", "epochs")):
        return
    location.delete_folder(f"tensorboard/{study}")
    delete_record(location, study)
