"""Where final runs take place: in this process one after the other, or on Ray, several at once."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray
import torch
from ray.exceptions import RayError

from contrasweep.tuning.errors import GpuFault, SharedGpuFull
from contrasweep.tuning.planning.resources import Resources
from contrasweep.tuning.progress.tracker import STARTING_RAY, RunsTracker
from contrasweep.tuning.ray.cluster import ray_session
from contrasweep.tuning.ray.final_worker import run_group, run_on_ray, run_one
from contrasweep.tuning.ray.liveness import what_is_silent
from contrasweep.tuning.ray.nodes import NodeLacks, lacking_anywhere, needs_of
from contrasweep.tuning.ray.out_of_memory import gpus_of_ray, request_alone
from contrasweep.tuning.ray.record_boards import STARTED, EpochBoard
from contrasweep.tuning.ray.trainer import cause_of, error_in_one_line
from contrasweep.tuning.store import StoreUnavailable, TrialOvertaken, shown_name
from contrasweep.tuning.trials.trial import TrialRequest, end_from_outside
from contrasweep.tuning.trials.worker_warnings import WarnOnce, warning_once

log = logging.getLogger(__name__)

POLL = 1.0
"""Seconds between two looks at how far the runs on Ray are."""


def names_of(requests: Sequence[TrialRequest]) -> list[str]:
    """Return what each run is called while it goes on; no two have the same name."""
    several = len({request.study.name for request in requests}) > 1
    return [
        f"trial {request.trial}, seed {request.experiment.seed}"
        + (f" of {shown_name(request.study.name)}" if several else "")
        for request in requests
    ]


def run_all(
    requests: Sequence[TrialRequest], resources: Resources, tracker: RunsTracker, show: Callable[..., object]
) -> Iterator[None]:
    """Run all requests; each step ends with the end of a run."""
    here = resources.concurrency == 1 and resources.workers == 1 and resources.machine is None
    # A fault of a GPU ends the process that uses it, which must not be this one.
    here = here and not resources.gpus
    waiting = deque(zip(requests, names_of(requests), strict=True))
    if not requests or here:
        yield from _run_here(waiting, tracker, show)
        return
    show(STARTING_RAY)
    by_study = {request.study.name: request for request in requests}
    with ray_session(resources, *map(needs_of, by_study.values())) as scratch:
        board = ray.remote(num_cpus=0)(EpochBoard).remote()
        start = _starter(resources, scratch / "train", board)
        running: dict[Any, tuple[TrialRequest, str]] = {}
        warn = WarnOnce()
        while waiting or running:
            # Start no more groups than fit: a group that gets only some of its workers would wait for ever.
            while waiting and len(running) < resources.concurrency:
                request, name = waiting.popleft()
                running[start(request, name)] = request, name
                tracker.begin(name, request.experiment.epochs)
            ended, _ = ray.wait(list(running), timeout=POLL)
            _take(board, tracker, warn)
            if not ended:
                show()
                continue
            request, name = running.pop(ended[0])
            if _gpu_was_full(ended[0]):
                waiting.append((request_alone(request, gpus_of_ray()), name))
                continue
            tracker.end(name)
            _check_end(ended[0], request, resources.machine is not None)
            yield


def _run_here(
    named: Iterable[tuple[TrialRequest, str]], tracker: RunsTracker, show: Callable[..., object]
) -> Iterator[None]:
    threads = torch.get_num_threads()
    try:
        with warning_once():
            for request, run in named:
                tracker.begin(run, request.experiment.epochs)
                tracker.start(run)

                def tell(epoch: int, run: str = run) -> None:
                    tracker.report(run, epoch)
                    show()

                show()
                run_one(request, tell)
                tracker.end(run)
                yield
    finally:
        # A notebook goes on in this process.
        torch.set_num_threads(threads)


def _take(board: Any, tracker: RunsTracker, warn: WarnOnce) -> None:
    """Pass on what the board holds; without the board, the runs go on."""
    try:
        epochs, warned = ray.get(board.take.remote())
    except RayError as error:
        log.debug("the board of the epochs is gone: %s", error)
        return
    for run, epoch in epochs.items():
        if epoch == STARTED:
            tracker.start(run)
        else:
            tracker.report(run, epoch)
    warn(warned)


def _gpu_was_full(ended: Any) -> bool:
    """Return whether a run has ended because memory ran out on a GPU that others use too."""
    try:
        ray.get(ended)
    except RayError as error:
        return isinstance(cause_of(error), SharedGpuFull)
    return False


def _check_end(ended: Any, request: TrialRequest, on_cluster: bool = False) -> None:
    """Record the failure of a run that has ended because its worker is gone.

    Raises:
        StoreUnavailable, TrialOvertaken: the run raised it.
        NodeLacks: its node came late, and cannot import our code.
        RayError: Ray itself has died.
    """
    try:
        ray.get(ended)
    except RayError as error:
        cause = cause_of(error)
        if isinstance(cause, StoreUnavailable | TrialOvertaken):
            raise cause from None
        if what_is_silent() is not None:
            raise
        lacking = lacking_anywhere(needs_of(request), request.study.name) if on_cluster else None
        if lacking is not None:
            raise NodeLacks(lacking) from None
        # The death of one run's worker does not end the other runs.
        end_from_outside(request, "failed", error=error_in_one_line(cause))


def _starter(resources: Resources, storage: Path, board: Any) -> Callable[[TrialRequest, str], Any]:
    """Return the function that starts a run on Ray: in one process, or in a group of workers."""
    if resources.workers == 1:
        # Each try has a process of its own, so a fault of the GPU ends with it.
        tries: dict[str, Any] = {"max_retries": 1, "retry_exceptions": [GpuFault]}
        # A task that asks for its GPUs by `options` would not have a process of its own by itself.
        tries |= {"num_gpus": resources.gpus, "max_calls": 1} if resources.gpus else {}
        one: Any = ray.remote(num_cpus=resources.cpus, **tries)(run_on_ray)
        checks_node = resources.machine is not None
        return lambda request, name: one.options(num_gpus=request.gpus).remote(
            request, name, board, checks_node
        )
    group = ray.remote(num_cpus=0, max_retries=1)(run_group)
    return lambda request, name: group.remote(
        request, name, board, replace(resources, gpus=request.gpus), storage
    )
