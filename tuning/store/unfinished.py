"""Files of a study that were never completed, because their writer was killed. A checkpoint can be large."""

from __future__ import annotations

from contextlib import suppress
from posixpath import basename
from typing import Final

from pyarrow import fs

from contrasweep.tuning.files import finished_name
from contrasweep.tuning.store.filesystem import OBJECT_STORES, Location, WrongKind
from contrasweep.tuning.store.layout import STUDIES, folders_of, heartbeat_path, record_path

# A write takes seconds. An unfinished file that is older than this was left by a writer that died.
_ABANDONED_SECONDS: Final = 3600.0


def clear_abandoned(location: Location, study: str, now: float) -> None:
    """Delete the unfinished files of a study that are older than an hour; `now` is in seconds since 1970."""
    found = unfinished_records(location, study)
    for place in folders_of(study):
        # Whoever reads or writes there is told that it is no folder.
        with suppress(WrongKind):
            found += _unfinished(location, place, below=True)
    for info in found:
        age = now - info.mtime.timestamp() if info.mtime is not None else 0.0
        if age > _ABANDONED_SECONDS:
            location.delete(location.within(info))


def unfinished_records(location: Location, study: str) -> list[fs.FileInfo]:
    """Return the unfinished files of a study's record and heartbeat, which lie beside those of others."""
    own = {basename(path) for path in (record_path(study), heartbeat_path(study))}
    return [info for info in _unfinished(location, STUDIES) if finished_name(info.base_name) in own]


def _unfinished(location: Location, folder: str, *, below: bool = False) -> list[fs.FileInfo]:
    if location.filesystem.type_name in OBJECT_STORES:
        return []  # a file appears there when it is complete
    return [info for info in location.files(folder, below=below) if finished_name(info.base_name) is not None]
