"""Steps that the tests of trials share: run a trial, drop one, read its rows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.plugins.hparams.metadata import SESSION_END_INFO_TAG, parse_session_end_info_plugin_data

from contrasweep.data import dataset_spec
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.planning.needs import lacking
from contrasweep.tuning.store import ResultsStore
from contrasweep.tuning.trials.checkpoints import RAREST_SECONDS
from contrasweep.tuning.trials.trial import DataCache, Trial, TrialReport, TrialRequest

STUDY = "digits-1"


class Clock:
    """A clock that moves only when told to, or by `step` seconds with every reading."""

    def __init__(self, step: float = 0.0) -> None:
        self.seconds, self.step = 0.0, step

    def __call__(self) -> float:
        self.seconds += self.step
        return self.seconds


def finish(trial: Trial) -> list[TrialReport]:
    reports = [trial.advance()]
    while not reports[-1].finished and reports[-1].error is None:
        reports.append(trial.advance())
    return reports


def row_of(store: ResultsStore, trial: int = 0) -> dict[str, Any]:
    (row,) = [row for row in store.trials(STUDY).to_pylist() if row["trial"] == trial]
    return dict(row)


def metrics_of(row: Mapping[str, Any]) -> dict[str, float]:
    prefix = "metric."
    return {
        key.removeprefix(prefix): value
        for key, value in row.items()
        if key.startswith(prefix) and value is not None
    }


def drop_after(request: TrialRequest, cache: DataCache, checkpointed: int, more: int = 0) -> None:
    """Advance to epoch `checkpointed`, saving after each, then `more` epochs without, and vanish."""
    clock = Clock(step=RAREST_SECONDS)
    trial = Trial(request, cache, clock=clock)
    for _ in range(checkpointed + 1):
        trial.advance()
    clock.step = 0.0
    for _ in range(more):
        trial.advance()
    trial.close()


def events_of(request: TrialRequest) -> EventAccumulator:
    assert request.events_folder is not None
    accumulator = EventAccumulator(request.events_folder)
    accumulator.Reload()
    return accumulator


def scalars_of(request: TrialRequest, tag: str) -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in events_of(request).Scalars(tag)]


def session_statuses(request: TrialRequest) -> list[int]:
    statuses = []
    for file in sorted(Path(str(request.events_folder)).iterdir()):
        for event in EventFileLoader(str(file)).Load():
            for value in event.summary.value:
                if value.tag == SESSION_END_INFO_TAG:
                    content = value.metadata.plugin_data.content
                    statuses.append(parse_session_end_info_plugin_data(content).status)
    return statuses


def fitting_dataset(method: str) -> str:
    """Return an embedded dataset that the method accepts; one with a bias where possible."""
    possible = ["colour-digits", "biased-digits", "two-view-digits"]
    if any("bias" in need for need in METHODS[method].needs):
        possible.reverse()
    return next(name for name in possible if not lacking(METHODS[method], dataset_spec(name)))
