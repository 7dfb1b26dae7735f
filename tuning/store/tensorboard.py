"""TensorBoard event files: scalars for each epoch, and the records of the HParams tab.

They are written with TensorBoard's protocol buffers, without torch or TensorFlow. A study's folder holds the
experiment summary. Each seed of a trial has a folder inside it; TensorBoard calls it a session.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams import api_pb2, metadata
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo, SessionStartInfo
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from contrasweep.tuning.experiment.statuses import Status
from contrasweep.tuning.store.schema import StudySchema

log = logging.getLogger(__name__)

_DATA_TYPES: Final = {
    "float": api_pb2.DATA_TYPE_FLOAT64,
    "int": api_pb2.DATA_TYPE_FLOAT64,
    "string": api_pb2.DATA_TYPE_STRING,
    "bool": api_pb2.DATA_TYPE_BOOL,
}
# A trial that the scheduler stopped is no failure. An interrupted one may go on.
_STATUSES: Final[Mapping[Status, Any]] = {
    "completed": api_pb2.STATUS_SUCCESS,
    "stopped": api_pb2.STATUS_SUCCESS,
    "failed": api_pb2.STATUS_FAILURE,
    "interrupted": api_pb2.STATUS_UNKNOWN,
    "running": api_pb2.STATUS_RUNNING,
}


_MOST_NAMES, _BETWEEN_NAMES = 12, 0.1
"""How often a later name is tried, and how many seconds lie between: a little more than a second in all."""


class TrialEvents:
    """Writes the event file of one attempt at a trial.

    TensorBoard keeps the first session record in a folder. So an attempt after a failed one needs a new
    folder; an attempt that resumes after an interruption may use the old folder, with ``resumed_from``.

    If events cannot be written, a warning is logged and the rest is skipped: the results are in the store.

    Args:
        folder: the folder of this trial, inside that of the experiment summary; a local path. With None,
            nothing is written.
        resumed_from: the last epoch of the checkpoint that this attempt resumes; TensorBoard drops later
            epochs of the attempt before.
        now: seconds since 1970 UTC.
    """

    def __init__(
        self,
        folder: str | Path | None,
        *,
        resumed_from: int | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._now = now
        self._folder = folder
        self._writer: EventFileWriter | None = None
        if folder is not None:
            with self._giving_up():
                self._writer = _new_file(Path(folder), last=resumed_from is not None)
        if resumed_from is not None:
            start = SessionLog(status=SessionLog.START)
            self._write(Event(wall_time=now(), step=resumed_from + 1, session_log=start))

    def session_start(self, hyperparameters: Mapping[str, Any], *, group: str) -> None:
        """Record the hyperparameters, without inactive ones (None).

        Args:
            hyperparameters: numbers, strings and bools by name.
            group: the name of the trial; TensorBoard shows all seeds of a trial as one row, with their mean.

        Raises:
            TypeError: a value has another type.
        """
        info = SessionStartInfo(start_time_secs=self._now(), group_name=group)
        for name, value in hyperparameters.items():
            if value is not None:
                _set_value(info.hparams[name], name, value)
        self._record(metadata.SESSION_START_INFO_TAG, HParamsPluginData(session_start_info=info))

    def scalars(self, epoch: int, metrics: Mapping[str, float | None]) -> None:
        """Record the metrics of an epoch, without missing ones (None)."""
        values = [
            Summary.Value(tag=tag(name), simple_value=value)
            for name, value in metrics.items()
            if value is not None
        ]
        self._write(Event(wall_time=self._now(), step=epoch, summary=Summary(value=values)))

    def session_end(self, status: Status) -> None:
        """Record how the trial ended: completed and stopped show as success, failed as failure."""
        info = SessionEndInfo(status=_STATUSES[status], end_time_secs=self._now())
        self._record(metadata.SESSION_END_INFO_TAG, HParamsPluginData(session_end_info=info))

    def close(self) -> None:
        """Flush and close the file."""
        with self._giving_up():
            if self._writer is not None:
                self._writer.close()
            self._writer = None

    def _record(self, name: str, content: HParamsPluginData) -> None:
        """Write a record of the HParams tab, at once: the process may be killed while the trial runs."""
        self._write(Event(wall_time=self._now(), step=0, summary=_summary(name, content)), flush=True)

    def _write(self, event: Event, *, flush: bool = False) -> None:
        with self._giving_up():
            if self._writer is not None:
                self._writer.add_event(event)
                if flush:
                    self._writer.flush()

    @contextmanager
    def _giving_up(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as error:
            self._writer = None
            log.warning("TensorBoard's events in %s are given up: %s", self._folder, error)


def write_experiment(
    folder: str | Path, columns: StudySchema, metric: str, rule: str, *, now: Callable[[], float] = time.time
) -> None:
    """Write the summary that gives the HParams tab its columns.

    Args:
        folder: the folder of the study, which holds those of its trials; a local path.
        columns: the study's hyperparameters and metrics.
        metric: the one by which the search chooses, which comes first.
        rule: what the best trial has, such as "highest val.accuracy at the last epoch".
        now: seconds since 1970 UTC.
    """
    experiment = api_pb2.Experiment(
        time_created_secs=now(),
        hparam_infos=[
            api_pb2.HParamInfo(name=name, type=_DATA_TYPES[kind])
            for name, kind in columns.hyperparameters.items()
        ],
        metric_infos=[
            api_pb2.MetricInfo(
                name=api_pb2.MetricName(tag=tag(name)),
                display_name=name,
                description=f"The best trial has the {rule}." if name == metric else "",
            )
            for name in sorted(columns.metrics, key=lambda name: name != metric)
        ],
    )
    writer = EventFileWriter(str(folder))
    summary = _summary(metadata.EXPERIMENT_TAG, HParamsPluginData(experiment=experiment))
    writer.add_event(Event(wall_time=now(), step=0, summary=summary))
    writer.close()


def tag(metric: str) -> str:
    """Return the scalar's name: the first dot becomes TensorBoard's group separator (``val/accuracy``)."""
    return metric.replace(".", "/", 1)


def _new_file(folder: Path, *, last: bool) -> EventFileWriter:
    """Return the writer of a new event file; with `last`, of one that TensorBoard reads after all others.

    TensorBoard reads files in the order of their names, which have the second, the host, the process and the
    number of its files, as text: the tenth file of a second would come before the ninth.
    """
    for _ in range(_MOST_NAMES):
        before = _event_files(folder)
        writer = EventFileWriter(str(folder), flush_secs=10)
        new = _event_files(folder) - before
        if not last or not before or not new or max(new) > max(before):
            return writer
        writer.close()
        for name in new:
            (folder / name).unlink()
        time.sleep(_BETWEEN_NAMES)
    return EventFileWriter(str(folder), flush_secs=10)


def _event_files(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*tfevents*")}


def _set_value(target: Any, name: str, value: Any) -> None:
    # bool before numbers: Python's bool is an int.
    if isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, int | float):
        target.number_value = value
    elif isinstance(value, str):
        target.string_value = value
    else:
        raise TypeError(f"The hyperparameter {name!r} must be a number, string or bool; given {value!r}.")


def _summary(name: str, content: HParamsPluginData) -> Summary:
    """Return a summary with a record of the HParams plugin in its metadata and an empty tensor."""
    value = Summary.Value(
        tag=name, metadata=metadata.create_summary_metadata(content), tensor=metadata.NULL_TENSOR
    )
    return Summary(value=[value])
