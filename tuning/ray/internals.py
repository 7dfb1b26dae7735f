"""The parts of Ray that we use although its documentation does not promise them.

`tests/ray/test_internals.py` holds each function here, and each environment variable that we set, against the
Ray that is installed. `pyproject.toml` admits the releases that were tried. To admit another, run the tests
with it, and repair here what fails.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ray._private.node import Node
from ray.tune.experiment import Trial

FAILURE = "Failure # "
"""What begins each failure in the file in which Tune writes down the failures of a trial."""

NO_CONTROLLER: Any = None
"""ASHA is given Tune's controller at every call and never uses it, so a replay needs none."""

_UNUSED = {name: getattr(Node, name) for name in ("start_monitor", "start_log_monitor", "start_api_server")}
"""What starts the autoscaler's monitor, the reader of workers' output, and the dashboard's server."""


@contextmanager
def fewer_processes() -> Iterator[None]:
    """Let a local Ray start inside a `with` block without three processes that a sweep never asks anything.

    Each imports Ray: together they take three of the seven seconds of processor time of a start. `ray.init`
    has no option for them; with `include_dashboard=False`, the server starts all the same.
    """
    try:
        for name in _UNUSED:
            setattr(Node, name, _start_nothing)
        yield
    finally:
        for name, start in _UNUSED.items():
            setattr(Node, name, start)


def _start_nothing(node: Node, **_: Any) -> None:
    """Stand in for a method of `Node` that starts a process."""


def take_off_rungs(asha: Any, trial_id: str) -> None:
    """Let ASHA forget the scores of a trial, so that it decides about them as about new ones."""
    for bracket in asha._brackets:
        for _, scores in bracket._rungs:
            scores.pop(trial_id, None)


def actor_of(trial: Trial) -> Any:
    """Return the actor that runs a trial; None while it has none."""
    return trial.temporary_state.ray_actor


def never_restart(trial: Trial) -> None:
    """Let the next death of a trial's actor be its last."""
    trial.max_failures = 0


def last_failure(trial: Trial) -> tuple[int, str] | None:
    """Return how often a trial failed, and Ray's message of the last time; None if it has not failed.

    Tune writes the death of a worker twice if it came while the worker took the trial over. A message names
    the process, so two equal ones tell of the same death.
    """
    if trial.error_file is None:
        return None
    failures = Path(trial.error_file).read_text(encoding="utf-8").split(FAILURE)[1:]
    # The first line has the number and the time.
    told = [failure.partition("\n")[2] for failure in failures]
    return (len(set(told)), told[-1]) if told else None


def begins_again(trial: Trial) -> bool:
    """Return whether Tune will begin a trial again, in `on_trial_error` of a scheduler.

    Tune asks there about both kinds of failures, and has ended the trial only if it begins again.
    """
    return bool(trial.status == Trial.ERROR)


def change(trial: Trial, config: dict[str, Any], resources: Any) -> None:
    """Change the configuration and the resources of a trial that is about to begin again.

    Its status must still be that of `begins_again`: Tune counts waiting trials by their resources.
    """
    # In place, for `forget`.
    trial.config.update(config)
    trial.update_resources(resources)


def forget(trial: Any) -> None:
    """Free the memory of a trial that has ended: Tune keeps its configuration and results to the end."""
    # A private attribute of the trial holds the same mapping.
    trial.config.clear()
    trial.evaluated_params = {}
    trial.experiment_tag = None
    trial.run_metadata.last_result = {}
    trial.run_metadata.metric_analysis.clear()
    trial.run_metadata.metric_n_steps.clear()


def raised_by_workers(error: BaseException) -> list[BaseException]:
    """Return the exceptions of the workers of a Ray Train run, or of their start, if `error` tells of any."""
    at_start = getattr(error, "controller_failure", None)
    failures = [*getattr(error, "worker_failures", {}).values(), *([] if at_start is None else [at_start])]
    # Ray Train wraps each of them.
    return [getattr(one, "_base_exc", one) for one in failures]
