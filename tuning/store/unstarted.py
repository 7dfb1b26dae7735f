"""Remove a new study that was refused before its first trial, so that its name is free again."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import get_args

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.store.filesystem import Location, StoreError
from contrasweep.tuning.store.layout import Kind, rows_folder
from contrasweep.tuning.store.removal import delete_folders, delete_record


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
    if any(location.files(rows_folder(kind, study), below=True) for kind in get_args(Kind)):
        return
    delete_folders(location, study)
    delete_record(location, study)
