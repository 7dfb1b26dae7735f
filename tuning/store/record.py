"""The record of a study: what it is, how it is searched, which columns its files have. Typed and checked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    PlainValidator,
    Strict,
    Tag,
    ValidationInfo,
    model_validator,
)

from contrasweep.names import in_utf8
from contrasweep.search_spaces import WHOLE_NUMBERS, Scalar, Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.experiment.conditions import Condition
from contrasweep.tuning.experiment.schedulers import USUAL_SCHEDULER, Scheduler
from contrasweep.tuning.experiment.statuses import Status
from contrasweep.tuning.limits import MOST
from contrasweep.tuning.store.naming import FINAL_SUFFIX, check_study_name, is_final_name
from contrasweep.tuning.store.schema import SCHEMA_VERSION, StudySchema


def _one_line(text: str) -> str:
    if not text or not text.isprintable():
        raise ValueError(f"given {text!r}; allowed: a line of text")
    return text


def _path_of_a_folder(path: str) -> str:
    if not path or "\0" in path:
        raise ValueError(f"given {path!r}; allowed: the path of a folder")
    return path


def _scalar(value: Any) -> Any:
    if not isinstance(value, bool | int | float | str):
        raise ValueError("allowed: true or false, a number, text")  # noqa: TRY004 pydantic takes a ValueError
    if isinstance(value, int) and value not in WHOLE_NUMBERS:
        raise ValueError("given a whole number of more than 64 bits; allowed: 64 bits")
    return value


def _setting(value: Any) -> Any:
    """A setting may also be a list of such values."""
    return tuple(map(_scalar, value)) if isinstance(value, list | tuple) else _scalar(value)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _nan_for_null(value: Any) -> Any:
    """JSON has no NaN: pydantic writes it as null."""
    return math.nan if value is None else value


def _infinity_for_null(value: Any) -> Any:
    """JSON has no infinity either, which a missing metric is beyond its bound."""
    return math.inf if value is None else value


def _space(content: Any, info: ValidationInfo) -> Space:
    origin = f"the space of study {info.data.get('name', '')}"
    if isinstance(content, Space):
        return content.model_copy(update={"origin": origin})
    return Space.parse(content, origin)


def _since_1970(created: datetime) -> datetime:
    if not 1970 <= created.year < 9999:
        raise ValueError(f"given {created}; allowed: a date from 1970 on")
    return created


OneLine = Annotated[str, AfterValidator(_one_line)]
Int64 = Annotated[int, Strict(), Field(ge=WHOLE_NUMBERS.start, lt=WHOLE_NUMBERS.stop)]
Count = Annotated[int, Strict(), Field(ge=1, le=MOST)]
Seconds = Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]
Value = Annotated[Scalar, BeforeValidator(_scalar)]
Setting = Annotated[Scalar | tuple[Scalar, ...], PlainValidator(_setting), PlainSerializer(_plain)]
Score = Annotated[float, BeforeValidator(_nan_for_null)]

Violation = Annotated[float, BeforeValidator(_infinity_for_null)]


class WarmTrialRecord(BaseModel):
    """A trial of an earlier study that a search learned from before its own first trial.

    Attributes:
        values: its active hyperparameters.
        state: how it ended.
        epochs: the score by epoch.
        value: the final score, or one for each metric of the search; None for a stopped trial.
        violations: by condition of the search, how far the trial breaks it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    values: Mapping[str, Value]
    state: Status
    epochs: Mapping[Annotated[int, Field(ge=0, le=MOST)], Score]
    value: float | tuple[float | None, ...] | None
    violations: Mapping[OneLine, Violation] = Field(default_factory=dict)


class WarmStartRecord(BaseModel):
    """The earlier studies that a search started from, and those of their trials that fit its space.

    Attributes:
        studies: their names.
        trials: the trials, in the order in which the search learned from them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    studies: tuple[str, ...] = ()
    trials: tuple[WarmTrialRecord, ...] = ()


class SearchRecord(BaseModel):
    """How a study is searched. Studies of earlier versions lack some fields; the defaults say what held then.

    Attributes:
        trials: the number of configurations planned; after an early end, of those that began.
        not_begun: how many more were planned before the search ended early.
        metric: the metric that decides, in the direction that it states itself; several are separated by
            commas and weighed against each other.
        asha_metric: the metric that the scheduler compares trials by; None means the first of `metric`.
        rung_metric: its cheap form, known after every epoch; None means the metric itself.
        eta: one in so many trials that reach a rung goes on.
        grace: the epochs that every trial gets; None for a part of all epochs.
        enqueued: configurations that run after the defaults, before the sampler's proposals.
        given: the values the user set, which hold in every trial.
        concurrency: how many trials may run at once.
        cpus: cores of each worker; `workers` processes train a trial together, each on `gpus` GPUs.
        trial_timeout: seconds.
        budget: seconds by the clock in which trials run, over all drivers; after them no further one begins.
        stop_when: the condition on which no further trial begins, as the search no longer gains.
        stop_from: the first trial that this condition counts: those before an extension count once.
        keep_weights: of how many of the best trials the encoders are kept.
        data_root: the folder of the datasets where the study ran.
        validation_images: how many different images a trial is scored on; None where that is unknown.
        keep: the conditions that the best trial keeps, and that the sampler knows of.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    trials: Count
    not_begun: Annotated[int, Strict(), Field(ge=0, le=MOST)] = 0
    metric: OneLine
    sampler: OneLine = "tpe"
    grid_points: Annotated[Count, Field(ge=2)] | None = None
    scheduler: Scheduler = USUAL_SCHEDULER
    asha_metric: OneLine | None = None
    rung_metric: OneLine | None = None
    eta: Annotated[Count, Field(ge=2)] = 3
    grace: Count | None = None
    mode: Literal["max"] = "max"
    seed: Int64 = 0
    seeds: Count = 1
    storage: OneLine | None = None
    warm_start: WarmStartRecord = WarmStartRecord()
    enqueued: tuple[Mapping[str, Value], ...] = ()
    given: Mapping[str, Setting] = Field(default_factory=dict)
    concurrency: Count = 1
    cpus: Count = 1
    workers: Count = 1
    gpus: Annotated[float, Strict(), Field(ge=0, allow_inf_nan=False)] = 0.0
    max_failures: Annotated[int, Strict(), Field(ge=0, le=MOST)] = 1
    trial_timeout: Seconds | None = None
    budget: Seconds | None = None
    stop_when: OneLine | None = None
    stop_from: Annotated[int, Strict(), Field(ge=0, le=MOST)] = 0
    keep_weights: Annotated[int, Strict(), Field(ge=0, le=MOST)] = 0
    data_root: Annotated[str, AfterValidator(_path_of_a_folder)] | None = None
    validation_images: Annotated[int, Strict(), Field(ge=1, lt=2**63)] | None = None
    keep: tuple[Condition, ...] = ()

    @property
    def at_once(self) -> int:
        """How many trials run at once: no more than there are."""
        return min(self.concurrency, self.trials)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics to maximise."""
        return tuple(self.metric.split(","))

    @property
    def compared_by(self) -> str:
        """The metric that the scheduler compares trials by, in its cheap form."""
        return self.asha_metric or self.metrics[0]


class FinalRecord(BaseModel):
    """What a study of final runs says in place of a search.

    Attributes:
        metric: the one that its tables show first.
        searched: the study whose configurations run; None in records of before 2026-11-27, whose names are
            `final_name(searched)`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    metric: OneLine = "test.accuracy"
    searched: Annotated[str, AfterValidator(check_study_name)] | None = None


_SEARCH, _FINAL = "a search", "final runs"
KINDS: Final = (_SEARCH, _FINAL)
"""What pydantic puts into the path of a field of `StudyRecord.search`."""


def _kind(search: Any) -> str:
    """Final runs have nothing but these fields; a search says at least how many trials it plans."""
    if isinstance(search, Mapping):
        return _FINAL if set(search) <= set(FinalRecord.model_fields) else _SEARCH
    return _FINAL if isinstance(search, FinalRecord) else _SEARCH


class StudyRecord(BaseModel):
    """Everything about a study that does not change while it runs.

    What is read from a store is checked as a whole: the parts of a record fit together.

    Attributes:
        name: unique in its results folder.
        created: when, with a time zone.
        command: the command line that made it; names of files in it that are not UTF-8 are spelled out.
        experiment: the base experiment, before any searched value.
        space: the search space; empty for final runs.
        search: how the study is searched, or that it holds final runs.
        columns: hyperparameters and metrics with their types.
        versions: package name to version, Python included.
        git_revision: of the code that ran, where it came from a repository.
        host: where the driver ran.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, AfterValidator(check_study_name)]
    created: Annotated[AwareDatetime, Strict(), AfterValidator(_since_1970)]
    command: Annotated[str, AfterValidator(in_utf8)]
    method: OneLine
    dataset: OneLine
    experiment: Experiment
    space: Annotated[Space, BeforeValidator(_space), PlainSerializer(Space.forms)]
    search: Annotated[
        Annotated[SearchRecord, Tag(_SEARCH)] | Annotated[FinalRecord, Tag(_FINAL)], Discriminator(_kind)
    ]
    columns: StudySchema
    schema_version: Annotated[int, Strict(), Field(ge=1, le=SCHEMA_VERSION)] = SCHEMA_VERSION
    versions: Mapping[str, str]
    git_revision: str | None = None
    host: str

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for problem in _disagreements(self):
            raise ValueError(problem)
        return self

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
        if isinstance(self.search, FinalRecord):
            return self.search.searched or self.name.removesuffix(FINAL_SUFFIX)
        return self.name

    def holds_runs_of(self, searched: str) -> bool:
        """Whether the study holds final runs of this search."""
        return self.is_final and self.searched_study == searched

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


def _disagreements(record: StudyRecord) -> Iterator[str]:
    """Say where the parts of a record do not fit together: a field, what it says, and what it should say."""
    for field in ("method", "dataset"):
        given, other = getattr(record, field), getattr(record.experiment, field)
        if given != other:
            yield f"{field}: given {given!r}; its experiment says {other!r}"
    if isinstance(record.search, SearchRecord):
        yield from _unfit_metrics(record.search, record.columns.metrics)
        yield from _unfit_space(record)
    elif not record.name.endswith(FINAL_SUFFIX):
        yield f"search.trials: it is missing; only final runs, named NAME{FINAL_SUFFIX}, go without"
    elif not is_final_name(record.name, record.searched_study):
        yield f"search.searched: given {record.searched_study!r}; its final runs have another name"
    elif record.space.names:
        yield f"space: given {', '.join(record.space.names)}; allowed: nothing, as final runs search nothing"


def _unfit_metrics(search: SearchRecord, columns: Sequence[str]) -> Iterator[str]:
    if len(set(search.metrics)) < len(search.metrics):
        yield f"search.metric: given {search.metric}; allowed: each metric once"
    others = {"asha_metric": search.asha_metric, "rung_metric": search.rung_metric}
    given = [("metric", metric) for metric in search.metrics]
    given += [("keep", condition.metric) for condition in search.keep]
    given += [(field, metric) for field, metric in others.items() if metric is not None]
    for field, metric in given:
        if metric not in columns:
            yield f"search.{field}: given {metric!r}; columns.metrics has {', '.join(columns) or 'none'}"


def _unfit_space(record: StudyRecord) -> Iterator[str]:
    types, columns = record.space.types(), record.columns.hyperparameters
    for name in {**types, **columns}:
        given, expected = columns.get(name, "nothing"), types.get(name, "nothing")
        if given != expected:
            yield f"columns.hyperparameters.{name}: given {given}; the space says {expected}"
    try:
        record.experiment.with_searched(types, record.space.defaults())
    except InputError as error:
        yield f"space: its defaults are no experiment: {error}"
