"""What a study is: one JSON file, written when it is created, that says how to read and to repeat it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError

from contrasweep.tuning.errors import InputError, did_you_mean
from contrasweep.tuning.store.filesystem import Location, StoreError
from contrasweep.tuning.store.schema import SCHEMA_VERSION, StudySchema

MAX_NAME_LENGTH: Final = 100
FINAL_SUFFIX: Final = "-final"
"""The final runs of a study are a study of their own; its name is the searched study's with this suffix."""
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


class WarmStartRecord(BaseModel):
    """The earlier studies that a search started from, and those of their trials that fit its space.

    Attributes:
        studies: their names.
        trials: `values`, `state`, `epochs` and `value` of each trial, as `WarmStart.record` writes them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    studies: tuple[str, ...] = ()
    trials: tuple[Mapping[str, Any], ...] = ()


class SearchRecord(BaseModel):
    """How a study is searched. Studies of earlier versions lack some fields; the defaults say what held then.

    Attributes:
        trials: the number of configurations planned.
        metric: the metric to maximise; several are separated by commas and weighed against each other.
        asha_metric: the metric that the scheduler compares trials by; None means the first of `metric`.
        rung_metric: its cheap form, known after every epoch; None means the metric itself.
        given: the values the user set, which hold in every trial.
        concurrency: trials at once.
        cpus: cores of each worker; `workers` processes train a trial together, each on `gpus` GPUs.
        trial_timeout: seconds.
        data_root: the folder of the datasets where the study ran.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    trials: int
    metric: str
    sampler: str = "tpe"
    grid_points: int | None = None
    scheduler: Literal["asha", "none"] = "asha"
    asha_metric: str | None = None
    rung_metric: str | None = None
    mode: Literal["max"] = "max"
    seed: int = 0
    seeds: int = 1
    storage: str | None = None
    warm_start: WarmStartRecord = WarmStartRecord()
    given: Mapping[str, Any] = Field(default_factory=dict)
    concurrency: int = 1
    cpus: int = 1
    workers: int = 1
    gpus: float = 0.0
    max_failures: int = 1
    trial_timeout: float | None = None
    data_root: str | None = None

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics to maximise."""
        return tuple(self.metric.split(","))


class FinalRecord(BaseModel):
    """What a study of final runs says in place of a search: the metric that its tables show first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metric: str = "test.accuracy"


def _kind(search: Any) -> str:
    """A search says how many trials it plans; final runs do not."""
    searched = "trials" in search if isinstance(search, Mapping) else isinstance(search, SearchRecord)
    return "search" if searched else "final"


class StudyRecord(BaseModel):
    """Everything about a study that does not change while it runs.

    Attributes:
        name: unique in its results folder.
        created: when, with a time zone.
        command: the command line that made it.
        experiment: the base experiment, before any searched value.
        space: the search space.
        search: how the study is searched, or that it holds final runs.
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
    search: Annotated[
        Annotated[SearchRecord, Tag("search")] | Annotated[FinalRecord, Tag("final")], Discriminator(_kind)
    ]
    columns: StudySchema
    schema_version: int = SCHEMA_VERSION
    versions: Mapping[str, str]
    git_revision: str | None = None
    host: str

    @property
    def metric(self) -> str:
        """The metric that the study maximises; the first one if there are several."""
        return self.search.metric.split(",")[0]

    @property
    def rung_metric(self) -> str:
        """The metric's cheap form, known after every epoch; the metric itself if the record names none."""
        named = self.search.rung_metric if isinstance(self.search, SearchRecord) else None
        return named or self.metric

    @property
    def is_final(self) -> bool:
        """Whether the study holds final runs and not a search."""
        return isinstance(self.search, FinalRecord)

    @property
    def seeds(self) -> int:
        """The number of seeds of each trial; final runs count each seed by itself."""
        return self.search.seeds if isinstance(self.search, SearchRecord) else 1

    @property
    def searched_study(self) -> str:
        """The name of the searched study: this one, or the one whose final runs this one holds."""
        return self.name.removesuffix(FINAL_SUFFIX) if self.is_final else self.name

    def with_search(self, **changes: Any) -> StudyRecord:
        """Return the record of a searched study with some fields of its search changed."""
        search = self.require_search().model_copy(update=changes)
        return self.model_copy(update={"search": search})

    def require_search(self) -> SearchRecord:
        """Return how the study is searched.

        Raises:
            InputError: the study holds final runs; the message names the study that was searched.
        """
        if isinstance(self.search, FinalRecord):
            raise InputError(
                f"study {self.name} holds final runs; the study that was searched is {self.searched_study}"
            )
        return self.search


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
    hint = did_you_mean(name, names)
    return f"There is no study {name!r} in {location.uri}.{hint} It holds: {', '.join(names)}."
