"""MLflow: a study is a parent run, its trials are nested in it, and the seeds of a trial in the trial."""

import logging
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException
from requests.exceptions import RequestException

from contrasweep.tuning.experiment.statuses import Status
from contrasweep.tuning.track.runs import TrackedRun
from contrasweep.tuning.track.tracker import TrackerFailed

_MLFLOW: Final = logging.getLogger("mlflow")

KEY: Final = "contrasweep.key"
"""The tag by which a run is found again."""

STATUS: Final = "contrasweep.status"
ERROR: Final = "contrasweep.error"
PARENT: Final = "mlflow.parentRunId"
MOST_METRICS: Final = 1000
MOST_PARAMS: Final = 100
"""The most metrics, and the most parameters, that MLflow takes in one call."""

COMPARED: Final = 1000
"""So many characters of a tag are compared."""

_STATUS: Final[Mapping[Status, str]] = {
    "running": "RUNNING",
    "completed": "FINISHED",
    "stopped": "FINISHED",
    "failed": "FAILED",
    "interrupted": "KILLED",
}


class MlflowTracker:
    """Sends runs to an MLflow tracking server or store.

    Args:
        uri: where it is, as `mlflow.set_tracking_uri` takes it; None for what MLflow's settings say.
        experiment: the experiment that takes the runs; it is made if it is not there.

    Raises:
        TrackerFailed: it does not answer.
    """

    def __init__(self, uri: str | None, experiment: str) -> None:
        self._sent: dict[str, str] = {}
        with _told():
            self._client: Any = MlflowClient(tracking_uri=uri)
            found = self._client.get_experiment_by_name(experiment)
            self._experiment: str = (
                self._client.create_experiment(experiment) if found is None else found.experiment_id
            )

    def send(self, run: TrackedRun) -> bool:
        """Send what MLflow lacks of a run; return whether it lacked anything.

        Raises:
            TrackerFailed: MLflow refused, or did not answer.
        """
        with _told():
            there = self._find(run)
            held = there if there is not None else self._create(run)
            self._sent[run.key] = held.info.run_id
            if there is not None and run.whole and not _other_tags(run, there):
                return False
            changed = self._fill(run, held)
            return changed or there is None

    def _find(self, run: TrackedRun) -> Any:
        found = self._client.search_runs([self._experiment], f"tags.`{KEY}` = '{run.key}'", max_results=1)
        return found[0] if found else None

    def _create(self, run: TrackedRun) -> Any:
        parent = {} if run.parent is None else {PARENT: self._sent[run.parent]}
        started = _milliseconds(run.started)
        return self._client.create_run(
            self._experiment, start_time=started, tags={KEY: run.key, **parent}, run_name=run.name
        )

    def _fill(self, run: TrackedRun, held: Any) -> bool:
        """Send metrics and parameters that the run lacks there, then its tags and how it stands."""
        place = held.info.run_id
        metrics = list(self._missing(run, place))
        params = [
            Param(name, str(value)) for name, value in run.params.items() if name not in held.data.params
        ]
        changed = bool(_other_tags(run, held))
        for chunk in _chunks(metrics, MOST_METRICS):
            self._client.log_batch(place, metrics=chunk)
        for chunk in _chunks(params, MOST_PARAMS):
            self._client.log_batch(place, params=chunk)
        if changed or metrics or params:
            tags = _tags(run)
            if ERROR in held.data.tags and ERROR not in tags:
                self._client.delete_tag(place, ERROR)
            # Last: a run with its tags is whole.
            self._client.log_batch(place, tags=[RunTag(name, text) for name, text in tags.items()])
        if changed and run.status == "running":
            self._client.update_run(place, status="RUNNING")
        elif changed:
            ended = None if run.ended is None else _milliseconds(run.ended)
            self._client.set_terminated(place, _STATUS[run.status], ended)
        return bool(changed or metrics or params)

    def _missing(self, run: TrackedRun, place: str) -> Iterator[Any]:
        """Yield the values that MLflow lacks: it would take one twice.

        A trial that ran again has other values after the same epochs. MLflow shows the later ones.
        """
        names = {name for point in run.points for name in point.metrics}
        there = {name: self._values(place, name) for name in names}
        for point in run.points:
            for name, value in point.metrics.items():
                if not _is_same(there[name].get(point.epoch), value):
                    yield Metric(name, value, _milliseconds(point.time), point.epoch)

    def _values(self, place: str, name: str) -> dict[int, float]:
        """Return the latest value of a metric after each epoch."""
        known = sorted(self._client.get_metric_history(place, name), key=lambda one: one.timestamp)
        return {one.step: one.value for one in known}


def _tags(run: TrackedRun) -> dict[str, str]:
    return {**{f"contrasweep.{name}": text for name, text in run.tags.items()}, STATUS: run.status}


def _other_tags(run: TrackedRun, held: Any) -> set[str]:
    """Return the tags that differ from those of the run in MLflow: its status, its attempt, an error."""
    # MLflow cuts long texts.
    own = {name: text[:COMPARED] for name, text in _tags(run).items()}
    tags = held.data.tags.items()
    there = {name: text[:COMPARED] for name, text in tags if name in own or name == ERROR}
    return {name for name in own.keys() | there.keys() if own.get(name) != there.get(name)}


def _is_same(there: float | None, value: float) -> bool:
    if there is None:
        return False
    # A database holds the largest number in place of infinity.
    held = max(-sys.float_info.max, min(sys.float_info.max, value))
    return there in (value, held) or (math.isnan(there) and math.isnan(value))


@contextmanager
def _told() -> Iterator[None]:
    """Turn MLflow's errors into ours; of its log, let only warnings through.

    At INFO it tells of the tables that it makes in a new database, in the middle of our lines.
    """
    before = _MLFLOW.level
    _MLFLOW.setLevel(max(before, logging.WARNING))
    try:
        yield
    except (MlflowException, RequestException, OSError) as error:
        raise TrackerFailed(f"MLflow took no more: {' '.join(str(error).split())}") from error
    finally:
        _MLFLOW.setLevel(before)


def _chunks(items: list[Any], most: int) -> Iterator[list[Any]]:
    return (items[start : start + most] for start in range(0, len(items), most))


def _milliseconds(time: datetime) -> int:
    return round(time.timestamp() * 1000)
