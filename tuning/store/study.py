"""What a study is: one JSON file, written when it is created, that says how to read and to repeat it."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from contrasweep.tuning.store.filesystem import Location, StoreError
from contrasweep.tuning.store.schema import SCHEMA_VERSION, StudySchema

MAX_NAME_LENGTH: Final = 100
_FOLDER: Final = "studies"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def check_study_name(name: str) -> str:
    """Return ``name`` if a study can have it.

    Raises:
        StoreError: it is too long, or has characters that a path or a partition name cannot carry.
    """
    if len(name) > MAX_NAME_LENGTH:
        raise StoreError(
            f"The study name {name!r} has {len(name)} characters; at most {MAX_NAME_LENGTH} are allowed."
        )
    if not _NAME.fullmatch(name):
        raise StoreError(
            f"The study name {name!r} is not allowed: use letters, digits, '.', '-' and '_', "
            "and begin with a letter or digit."
        )
    return name


class StudyRecord(BaseModel):
    """Everything about a study that does not change while it runs.

    Attributes:
        name: unique in its results folder.
        created: when, with a time zone.
        command: the command line that made it.
        experiment: the base experiment, before any searched value.
        space: the search space.
        search: sampler, scheduler, trials, epochs, metric, mode, seed, ...
        columns: hyperparameters and metrics with their types.
        versions: package name to version, Python included.
        git_revision: of the code that ran, where it came from a repository.
        host: where the driver ran.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, AfterValidator(check_study_name)]
    created: datetime
    command: str
    method: str
    dataset: str
    experiment: Mapping[str, Any]
    space: Mapping[str, Any]
    search: Mapping[str, Any]
    columns: StudySchema
    schema_version: int = SCHEMA_VERSION
    versions: Mapping[str, str]
    git_revision: str | None = None
    host: str

    @property
    def metric(self) -> str:
        """What the study maximises; of several metrics, the first."""
        return str(self.search["metric"]).split(",")[0]

    @property
    def rung_metric(self) -> str:
        """Its cheap form, known after every epoch; where there is none, the metric itself."""
        return str(self.search.get("rung_metric", self.metric))


def save_study(location: Location, record: StudyRecord, *, replace: bool = False) -> None:
    """Write ``studies/NAME.json``.

    Raises:
        StoreError: a study of that name exists and ``replace`` is not set.
    """
    if not replace and record.name in study_names(location):
        raise StoreError(
            f"A study named {record.name!r} exists in {location.uri}; resume it or choose another name."
        )
    location.write(_path(record.name), record.model_dump_json(indent=2).encode())


def load_study(location: Location, name: str) -> StudyRecord:
    """Read ``studies/NAME.json``.

    Raises:
        StoreError: there is no such study (the nearest name is given), its file is damaged, or a later
            version of the store wrote it.
    """
    try:
        content = location.read(_path(check_study_name(name)))
    except FileNotFoundError:
        raise StoreError(_unknown(location, name)) from None
    try:
        fields = json.loads(content)
        version = fields.get("schema_version") if isinstance(fields, dict) else None
        if isinstance(version, int) and version > SCHEMA_VERSION:
            raise StoreError(
                f"Study {name!r} was written with store version {version}; "
                f"this contrasweep reads up to {SCHEMA_VERSION}."
            )
        return StudyRecord.model_validate(fields)
    except (json.JSONDecodeError, UnicodeDecodeError, ValidationError) as error:
        raise StoreError(f"The study file {location.path(_path(name))} is damaged: {error}") from error


def study_names(location: Location) -> list[str]:
    """The names of all studies in a results folder, sorted."""
    names = [
        info.base_name.removesuffix(".json") for info in location.files(_FOLDER) if info.extension == "json"
    ]
    return sorted(name for name in names if _NAME.fullmatch(name))


def _path(name: str) -> str:
    return f"{_FOLDER}/{name}.json"


def _unknown(location: Location, name: str) -> str:
    names = study_names(location)
    if not names:
        return f"There is no study {name!r} in {location.uri}: it holds no studies."
    nearest = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
    return f"There is no study {name!r} in {location.uri}.{hint} It holds: {', '.join(names)}."
