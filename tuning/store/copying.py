"""Copy studies from one results folder into another: all that belongs to them, their records last."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pyarrow import fs

from contrasweep.tuning.files import finished_name
from contrasweep.tuning.store.filesystem import Location, StoreError, StudyBusy
from contrasweep.tuning.store.heartbeat import HeartbeatRecord, living_driver, read_heartbeat
from contrasweep.tuning.store.layout import folders_of, heartbeat_path, record_path, rows_folder
from contrasweep.tuning.store.study import final_studies_of, load_study, refuse_taken, study_names

_ADVICE: Final = "Name other studies, or delete those that are there."


@dataclass(frozen=True)
class CopiedStudy:
    """What was copied of a study: how many files, and their bytes."""

    study: str
    files: int
    size: int


def with_final_runs(source: Location, studies: Sequence[str] = ()) -> list[str]:
    """Return these studies of a results folder, or all, each with the studies of its final runs.

    Raises:
        StoreError: there is no such study, its record is damaged, or the folder has no study.
    """
    given = [one for study in studies for one in (study, *final_studies_of(source, study))]
    found = dict.fromkeys(given or study_names(source))
    if not found:
        raise StoreError(f"There are no studies in {source.uri}.")
    for study in found:
        load_study(source, study)
    return [*found]


def copy_studies(source: Location, target: Location, studies: Sequence[str]) -> Iterator[CopiedStudy]:
    """Copy each study, and yield what was copied of it. Without an interruption, nothing is copied twice.

    A study of the target appears whole, when its record is there. If the copy is interrupted, the same call
    goes on: files that are there with the size of theirs, and no older, stay.

    Raises:
        StoreError: the target has a study of one of the names, or rows without a study.
        StudyBusy: a driver is running a study, or began to while it was copied.
        OSError: something cannot be read or written.
    """
    refuse_taken(target, studies, f"nothing was copied. {_ADVICE}")
    beats = {study: _last_beat(source, study) for study in studies}
    for study in studies:
        files = _files_of(source, study)
        there = {target.within(one): one for one in _files_of(target, study)}
        _refuse_other_rows(target, study, there.keys() - {source.within(info) for info in files})
        try:
            for info in files:
                path = source.within(info)
                if not _is_copied(info, there.get(path)):
                    target.write(path, source.read(path))
        except FileNotFoundError as error:
            raise _changed(study) from error
        # A merge has no heartbeat; a listing beside it may miss the merged file and those that it deletes.
        is_the_same = _paths(_files_of(source, study)) == _paths(files)
        if not is_the_same or read_heartbeat(source, study) != beats[study]:
            raise _changed(study)
        if beats[study] is not None:
            target.write(heartbeat_path(study), source.read(heartbeat_path(study)))
        try:
            target.create(record_path(study), source.read(record_path(study)))
        except FileExistsError:  # another command has created it since
            refuse_taken(target, [study], f"it was not copied. {_ADVICE}")
            raise
        yield CopiedStudy(study, len(files), sum(info.size or 0 for info in files))


def _last_beat(source: Location, study: str) -> HeartbeatRecord | None:
    """Return the last beat of a study's driver, which has ended."""
    living = living_driver(source, study)
    if living is not None:
        raise StudyBusy(
            f"Study {study!r} is being run (process {living.pid} on {living.host}): "
            "copy it when it has ended."
        )
    return read_heartbeat(source, study)


def _files_of(location: Location, study: str) -> list[fs.FileInfo]:
    """Return the files in the folders of a study, without those that a killed writer left unfinished."""
    listed = (one for place in folders_of(study) for one in location.files(place, below=True))
    return [one for one in listed if finished_name(one.base_name) is None]


def _paths(files: Sequence[fs.FileInfo]) -> set[str]:
    return {one.path for one in files}


def _refuse_other_rows(target: Location, study: str, others: Collection[str]) -> None:
    """Refuse files that the target alone has, if they are rows that would be read with those of the copy."""
    places = (f"{rows_folder('trials', study)}/", f"{rows_folder('epochs', study)}/")
    rows = [path for path in others if path.startswith(places)]
    if rows:
        raise StoreError(
            f"{target.uri} has rows of a study {study!r} without a record, such as {min(rows)}: "
            "delete that study, or move them away, then copy again."
        )


def _is_copied(info: fs.FileInfo, there: fs.FileInfo | None) -> bool:
    """Whether an interrupted copy has written a file already."""
    if there is None or there.size != info.size or there.mtime_ns is None or info.mtime_ns is None:
        return False
    return bool(there.mtime_ns >= info.mtime_ns)


def _changed(study: str) -> StudyBusy:
    return StudyBusy(f"Study {study!r} changed while it was copied: copy it when no command changes it.")
