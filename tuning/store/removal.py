"""Delete a study: everything that a results folder holds of it, its record last."""

from dataclasses import dataclass

from contrasweep.tuning.store.filesystem import Location
from contrasweep.tuning.store.heartbeat import Heartbeat
from contrasweep.tuning.store.layout import folders_of, heartbeat_path, record_path
from contrasweep.tuning.store.unfinished import unfinished_records


@dataclass(frozen=True)
class Held:
    """What a results folder holds of a study in one place: how many files, and their bytes."""

    place: str
    files: int
    size: int


def held_by(location: Location, study: str) -> list[Held]:
    """Return what a results folder holds of a study: rows, checkpoints, encoders, TensorBoard's files.

    Its final runs are a study of their own, and not among it.

    Raises:
        OSError: a folder cannot be read.
    """
    listed = ((place, location.files(place, below=True)) for place in folders_of(study))
    return [
        Held(place, len(files), sum(info.size or 0 for info in files)) for place, files in listed if files
    ]


def delete_study(location: Location, study: str) -> None:
    """Delete a study. If this is interrupted, the study is still there, and the same call goes on.

    Raises:
        StudyBusy: a driver is running the study.
        OSError: something cannot be deleted.
    """
    with Heartbeat(location, study):
        delete_folders(location, study)
    delete_record(location, study)


def delete_folders(location: Location, study: str) -> None:
    """Delete all that a study has but its record and heartbeat; the rows of its trials go last.

    A study whose deletion was interrupted may be resumed. Trials that have lost their rows then run again:
    they must not find epochs, states and encoders of other trials with their numbers.
    """
    for place in reversed(folders_of(study)):
        location.delete_folder(place)


def delete_record(location: Location, study: str) -> None:
    """Delete what says that there is a study; its name is then free. The record goes last."""
    unfinished = [location.within(info) for info in unfinished_records(location, study)]
    for path in (*unfinished, heartbeat_path(study), record_path(study)):
        location.delete(path)
