"""Copy a study to a tracker, once or as it grows. What the tracker has already is not sent again."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Final

from contrasweep.tuning.errors import InputError, unknown_name
from contrasweep.tuning.store import ResultsStore
from contrasweep.tuning.track.runs import runs_of
from contrasweep.tuning.track.tracker import Tracker

TRACKERS: Final = ("mlflow", "wandb")
PROJECT: Final = "contrasweep"
"""The experiment or project of a tracker that takes studies, unless the user names one."""

POLL_SECONDS: Final = 10.0
"""Seconds between two looks at a study that is followed."""


def check_tracker(target: str) -> str:
    """Return which tracker a `target` such as `mlflow:URI` names.

    Raises:
        InputError: there is none (the message has the nearest name), its package is not installed, or it
            takes no address.
    """
    kind, colon, uri = target.partition(":")
    if kind not in TRACKERS:
        if "://" in target:
            raise InputError(f"--to takes a tracker, and for MLflow its address; give --to mlflow:{target}")
        raise unknown_name("tracker", kind, TRACKERS)
    if colon and not uri:
        raise InputError(f"--to {target} lacks what follows the colon; as in mlflow:http://localhost:5000")
    if kind == "mlflow" and uri.endswith(".db") and "://" not in uri:
        raise InputError(f"--to {target} names a file; a database is given as --to mlflow:sqlite:///{uri}")
    if kind == "wandb" and uri:
        raise InputError(f"--to wandb takes no address, given {uri!r}; --project names the project")
    if find_spec(kind) is None:
        raise InputError(f"--to {kind} needs the package {kind}: pip install 'contrasweep[{kind}]'")
    return kind


def tracker_at(target: str, project: str = PROJECT) -> Tracker:
    """Return a connection to the tracker that `target` names: `mlflow`, `mlflow:URI` or `wandb`.

    Args:
        target: MLflow without a URI is where its own settings say (MLFLOW_TRACKING_URI).
        project: the experiment (MLflow) or project (W&B) that takes the runs.

    Raises:
        InputError: see `check_tracker`.
        TrackerFailed: it does not answer.
    """
    if check_tracker(target) == "mlflow":
        from contrasweep.tuning.track.to_mlflow import MlflowTracker

        return MlflowTracker(target.partition(":")[2] or None, project)
    from contrasweep.tuning.track.to_wandb import WandbTracker

    return WandbTracker(project)


def track(store: ResultsStore, study: str, tracker: Tracker) -> tuple[int, int]:
    """Copy a study as it is now; return how many runs it has, and of how many something was missing.

    Raises:
        StoreError: there is no such study.
        TrackerFailed: the tracker refused, or did not answer.
    """
    sent = [tracker.send(run) for run in runs_of(store, study)]
    return len(sent), sum(sent)


def follow(
    store: ResultsStore,
    study: str,
    tracker: Tracker,
    wait: Callable[[float], object],
    tell: Callable[[int, int], object],
) -> None:
    """Copy a study again and again until its driver has ended, and once more.

    Args:
        store: the store that has the study.
        study: its name.
        tracker: the tracker.
        wait: waits for a number of seconds.
        tell: called after each look with what `track` returned.

    Raises:
        StoreError, TrackerFailed: see `track`.
    """
    running = True
    while running:
        # First the state, then the rows: what a driver wrote before it ended is among them.
        running = store.state(study) == "running"
        tell(*track(store, study, tracker))
        if running:
            wait(POLL_SECONDS)
