"""The file of a study, `studies/NAME.json`: written when the study is created, and read by every command."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from pydantic import ValidationError
from pydantic_core import from_json

from contrasweep.names import did_you_mean
from contrasweep.tuning.errors import first_reason, one_line
from contrasweep.tuning.store.filesystem import Location, StoreError
from contrasweep.tuning.store.layout import STUDIES, folders_of, record_path
from contrasweep.tuning.store.naming import check_study_name, is_final_name, is_study_name
from contrasweep.tuning.store.record import KINDS, StudyRecord
from contrasweep.tuning.store.schema import SCHEMA_VERSION
from contrasweep.version import __version__

OTHER_NAME: Final = "resume, or choose another name."
"""What the user of a name that is taken by a new study can do."""

_KEPT: Final = 1024


def save_study(location: Location, record: StudyRecord, *, replace: bool = False) -> None:
    """Write ``studies/NAME.json``.

    Raises:
        StoreError: ``replace`` is not set, and a study of that name exists, or has left files. If several
            commands create it at the same moment, all but one get this error (except in a bucket).
    """
    path, content = record_path(record.name), record.model_dump_json(indent=2).encode()
    if replace:
        location.write(path, content)
        return
    refuse_remains(location, [record.name])
    try:
        location.create(path, content)
    except FileExistsError:
        raise _taken(location, [record.name], OTHER_NAME) from None


def refuse_remains(location: Location, names: Iterable[str]) -> None:
    """Raise StoreError if one of the names has files without a record: they would count as a new study's.

    A copy was interrupted, a worker did not know that its study was deleted, or a user deleted the record.
    """
    for name in names:
        remains = [place for place in folders_of(name) if location.files(place, below=True)]
        # A command that creates the study at this moment writes its record first.
        if remains and name not in study_names(location):
            raise StoreError(
                f"{location.uri} has files of a study named {name!r} without its record, "
                f"{record_path(name)}: {', '.join(remains)}. Delete that study, or choose another name."
            )


def refuse_taken(location: Location, names: Iterable[str], advice: str) -> None:
    """Raise StoreError if a results folder has a study of one of the names.

    Args:
        location: the results folder.
        names: of the studies.
        advice: what the user can do, which ends the message.
    """
    taken = sorted(set(names).intersection(study_names(location)))
    if taken:
        raise _taken(location, taken, advice)


def _taken(location: Location, names: Sequence[str], advice: str) -> StoreError:
    """Return the error about names that studies of a results folder have."""
    quoted = [repr(name) for name in names]
    which = f"A study named {quoted[0]} exists" if len(quoted) == 1 else f"Studies {', '.join(quoted)} exist"
    return StoreError(f"{which} in {location.uri}; {advice}")


def load_study(location: Location, name: str) -> StudyRecord:
    """Read ``studies/NAME.json``.

    Raises:
        StoreError: there is no such study (the nearest name is given), its file is damaged, or a later
            version of the store wrote it.
    """
    path = location.path(record_path(check_study_name(name)))
    try:
        content = location.read(record_path(name))
    except FileNotFoundError:
        raise StoreError(_unknown(location, name)) from None
    except PermissionError as error:
        raise StoreError(f"The study file {path} cannot be read: {error}") from error
    try:
        record = _parsed(content)
    except ValidationError as error:
        raise StoreError(_damage(path, content, error)) from error
    if record.name != name:
        raise StoreError(
            f"The study file {path} is damaged: name: given {record.name!r}; allowed: the name of the file"
        )
    return record


def study_names(location: Location) -> list[str]:
    """The names of all studies in a results folder, sorted."""
    names = [
        info.base_name.removesuffix(".json") for info in location.entries(STUDIES) if info.extension == "json"
    ]
    return sorted(filter(is_study_name, names))


def final_studies_of(location: Location, searched: str) -> list[str]:
    """Return the studies of a search's final runs, by name; one that cannot be read counts, too."""
    named = [one for one in study_names(location) if is_final_name(one, searched)]
    return [one for one in named if _holds_runs_of(location, one, searched)]


def _holds_runs_of(location: Location, final: str, searched: str) -> bool:
    try:
        return load_study(location, final).holds_runs_of(searched)
    except StoreError:
        return True


@lru_cache(maxsize=_KEPT)
def _parsed(content: bytes) -> StudyRecord:
    """Parse the content of a study file; a command asks for the same record several times."""
    return StudyRecord.model_validate_json(content)


def _unknown(location: Location, name: str) -> str:
    names = study_names(location)
    if not names:
        return f"There is no study {name!r} in {location.uri}: it holds no studies."
    hint = did_you_mean(name, names)
    return f"There is no study {name!r} in {location.uri}.{hint} It holds: {', '.join(names)}."


def _damage(path: str, content: bytes, error: ValidationError) -> str:
    """Say in one line why a study file cannot be read."""
    try:
        fields = from_json(content)
    except ValueError:
        fields = None
    versions = fields.get("versions") if isinstance(fields, dict) else None
    stored = fields.get("schema_version") if isinstance(fields, dict) else None
    if type(stored) is int and stored > SCHEMA_VERSION:
        return (
            f"The study file {path} was written with store version {stored}; "
            f"this contrasweep reads up to {SCHEMA_VERSION}."
        )
    writer = versions.get("contrasweep") if isinstance(versions, dict) else None
    other = (
        f" (contrasweep {writer} wrote it, this is {__version__})"
        if writer not in (None, __version__)
        else ""
    )
    return one_line(f"The study file {path} is damaged: {first_reason(error, KINDS)}{other}")
