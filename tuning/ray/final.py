"""Final runs: selected experiments on fresh seeds, each trained on all training images and tested once."""

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import ray
import torch
from ray.exceptions import RayError

from contrasweep.names import counted
from contrasweep.tuning.errors import GpuFault, SharedGpuFull, SweepFailed, SweepStopped
from contrasweep.tuning.objectives.ranks import group_ranks
from contrasweep.tuning.planning.final_plan import FinalPlan, plan_final_runs, trial_and_seed
from contrasweep.tuning.planning.resources import AskedResources, Machine, Resources
from contrasweep.tuning.planning.selected import Selected
from contrasweep.tuning.progress.display import OnProgress, following
from contrasweep.tuning.progress.tracker import STARTING_RAY, RunsTracker
from contrasweep.tuning.ray.cluster import ray_session
from contrasweep.tuning.ray.liveness import what_is_silent
from contrasweep.tuning.ray.nodes import (
    NodeLacks,
    lacking_anywhere,
    needs_of,
    refuse_this_node,
    take_share_of_node,
)
from contrasweep.tuning.ray.out_of_memory import gpus_of_ray, request_alone
from contrasweep.tuning.ray.record_boards import STARTED, EpochBoard
from contrasweep.tuning.ray.signals import told_in_notebooks
from contrasweep.tuning.ray.trainer import cause_of, error_in_one_line, fit
from contrasweep.tuning.results.commands import FINAL_SEEDS, show_command
from contrasweep.tuning.results.encoders import stored_encoders
from contrasweep.tuning.results.failures import common_error
from contrasweep.tuning.results.final_runs import FinalRuns, completed_rows
from contrasweep.tuning.results.merging import merge_rows
from contrasweep.tuning.store import Heartbeat, ResultsStore, StoreUnavailable, TrialOvertaken, shown_name
from contrasweep.tuning.training.devices import AUTO
from contrasweep.tuning.training.final_scores import scores_of_final_run
from contrasweep.tuning.trials.seeds import new_trial
from contrasweep.tuning.trials.trial import DataCache, TrialReport, TrialRequest, end_from_outside
from contrasweep.tuning.trials.worker_warnings import WarnOnce, passing_on_warnings, warning_once

log = logging.getLogger(__name__)

Tell = Callable[[int], object]
"""Called with the epoch that a run has ended."""

POLL = 1.0
"""Seconds between two looks at how far the runs on Ray are."""


def final_runs(
    selected: Selected | str | Path | Sequence[Selected | str | Path],
    *,
    seeds: int = FINAL_SEEDS,
    first_seed: int | None = None,
    epochs: int | None = None,
    elsewhere: Collection[tuple[str, int]] = (),
    results: str | Path | None = None,
    data_root: Path | None = None,
    concurrency: int | None = None,
    cpus_per_run: int = 1,
    workers: int = 1,
    gpus_per_worker: float | None = None,
    device: str = AUTO,
    machine: Machine | None = None,
    snapshots: int | None = None,
    command: str = "",
    progress: OnProgress = None,
) -> FinalRuns:
    """Run each configuration on `seeds` fresh seeds and score it on the test split.

    The runs use the whole training split, without a validation split, because nothing is selected any more.
    Runs that the store already holds are not repeated. Their study has the name of the searched one and
    `-final`; with another number of `epochs` than in the search, such as 200, `-200-epochs-final`.

    Args:
        selected: one or several: from `SweepResult.best`, `best_trials`, `load_best` or `ablated`; or the
            name of a study, for its best trial, or the file of a configuration. The first is compared with
            the others.
        seeds: how many runs each configuration gets.
        first_seed: the first seed; by default the one above the seeds of the search.
        epochs: how long each run trains; by default as long as in the search.
        elsewhere: runs that another study holds, each as the hash of its experiment and its seed. They are
            left out, and are not among the rows returned.
        results: the results folder; by default that of the selected trials, else CONTRASWEEP_RESULTS or
            `results`.
        data_root: the folder of the datasets; by default the one of the search, if this machine has it.
        concurrency: how many runs at once; by default as many as the machine has cores for.
        cpus_per_run: cores, and threads, of each worker of a run.
        workers: how many processes train one run together.
        gpus_per_worker: GPUs of each worker, 0 to 1; by default one, or none where the device is the CPU.
        device: `auto`, which is a GPU where there is one, `cpu` or `cuda`.
        machine: where the runs take place; by default this machine.
        snapshots: keep the encoder after every so many epochs too, as `epoch-00010.safetensors`; None for
            the last epoch alone.
        command: the command line, for the record.
        progress: whether to show the progress: None shows it on terminals and in notebooks, True everywhere,
            False nowhere. A function is called with a `RunsProgress`.

    Raises:
        InputError: see `plan_final_runs`, or a final study holds runs of other settings.
        DatasetMissing: the dataset's files are not in place.
        SweepFailed: no run completed.
        SweepStopped: Ray died, or another driver has taken over the study; a second call goes on.
    """
    asked = AskedResources(concurrency, cpus_per_run, workers, gpus_per_worker, device, machine)
    resources = asked.resources()
    plans = plan_final_runs(
        selected,
        resources,
        seeds=seeds,
        first_seed=first_seed,
        epochs=epochs,
        elsewhere=elsewhere,
        results=results,
        data_root=data_root,
        snapshots=snapshots,
        command=command,
    )
    first, *others = run_plans(plans, resources, progress)
    return first.beside(*others) if others else first


def run_plans(
    plans: Sequence[FinalPlan], resources: Resources, progress: OnProgress = None
) -> list[FinalRuns]:
    """Run what the store lacks of the final runs of several studies, together; return those of each study.

    The arguments and the errors are those of `final_runs`. Nothing is trained if one of the plans is refused.
    """
    with ExitStack() as studies:
        studies.enter_context(told_in_notebooks("the same call"))
        beating = [studies.enter_context(Heartbeat(plan.location, plan.record.name)) for plan in plans]
        show = studies.enter_context(following(progress)) or (lambda state: None)
        missing = [_missing(plan) for plan in plans]
        requests = [request for own in missing for request in own]
        of = sum(len(plan.requests) for plan in plans)
        at_once = replace(resources, concurrency=min(resources.concurrency, len(requests)))
        tracker = RunsTracker(of, of - len(requests), slots=max(1, at_once.concurrency))
        for _ in _run_all(requests, at_once, tracker, lambda stage=None: show(tracker.progress(stage))):
            show(tracker.progress())
            for plan, heartbeat in zip(plans, beating, strict=True):
                _check_in_charge(plan, heartbeat)
        for plan in plans:
            merge_rows(plan.location, plan.record.name)
    return [_ended(plan, len(own)) for plan, own in zip(plans, missing, strict=True)]


def _missing(plan: FinalPlan) -> list[TrialRequest]:
    """Return what the store lacks of the runs of a study."""
    missing = plan.missing(completed_rows(ResultsStore(plan.location), plan.record.name))
    _tell_of_snapshots(plan, missing)
    return missing


def _check_in_charge(plan: FinalPlan, heartbeat: Heartbeat) -> None:
    if not heartbeat.in_charge():
        raise SweepStopped(
            f"the final runs {plan.record.name} stopped: another driver has taken them over, or they were "
            "deleted"
        )


def _ended(plan: FinalPlan, trained: int) -> FinalRuns:
    """Return the completed runs of a study; so many were trained now."""
    study, store = plan.record.name, ResultsStore(plan.location)
    completed = completed_rows(store, study)
    keys = map(trial_and_seed, plan.requests)
    rows = [completed[key] for key in keys if key in completed]
    if not rows:
        error = common_error(store.trials(study)["error"].to_pylist())
        told = "" if error is None else f": {error}"
        show_errors = show_command(study, plan.location.uri)
        raise SweepFailed(f"no final run completed{told}; `{show_errors}` shows the errors")
    of = len(plan.requests)
    return FinalRuns(study, rows, failed=of - len(rows), held=of - trained)


def _tell_of_snapshots(plan: FinalPlan, missing: Sequence[TrialRequest]) -> None:
    """Warn of runs too short for a snapshot, and of stored ones without any: they do not run again."""
    for asked, epochs in {(one.snapshots or 0, one.experiment.epochs) for one in plan.requests}:
        if asked > epochs:
            log.warning(
                "no snapshots will be kept: they were asked for every %d epochs, and a run trains for %d",
                asked,
                epochs,
            )
    due = [
        one.snapshot_path(one.snapshots)
        for one in plan.requests
        if one.snapshots and one.snapshots < one.experiment.epochs and one not in missing
    ]
    without = len(set(due) - stored_encoders(plan.location, plan.record.name)) if due else 0
    if without:
        log.warning(
            "the store holds %s without snapshots, which will not be trained again: for snapshots, give "
            "another results folder",
            counted(without, "run"),
        )


def run_one(request: TrialRequest, tell: Tell = lambda epoch: None) -> TrialReport:
    """Train and test one configuration on one seed, from its checkpoint if an earlier attempt left one.

    Every rank of a group calls this function; the first one tests and writes, and calls `tell`.
    """
    torch.set_num_threads(request.cpus)
    ranks, at_end = group_ranks(), partial(scores_of_final_run, data_root=request.data_root)
    trial = new_trial(request, DataCache(device=request.device), ranks, at_end)
    report = trial.advance()
    while not report.finished and report.error is None:
        if ranks.rank == 0:
            tell(report.epoch)
        report = trial.advance()
    return report


def run_group(request: TrialRequest, name: str, board: Any, resources: Resources, storage: Path) -> None:
    """Train and test one configuration on one seed, on several workers together."""
    config = {"request": request, "name": name, "board": board, "checks_node": resources.machine is not None}
    fit(_run_rank, config, resources, storage)


def _run_rank(config: dict[str, Any]) -> None:
    run_on_ray(**config)


def run_on_ray(request: TrialRequest, name: str, board: Any, checks_node: bool = False) -> TrialReport:
    """Do `run_one`, and post its beginning, each epoch and its failure on an `EpochBoard`, under its `name`.

    Where the first worker of a group records a failure, the others raise its error, and Ray Train starts the
    group anew as after a death. The new group finds the failure on the board and does not train again.

    Raises:
        NodeLacks: the node is to be checked, and lacks what the run needs.
    """
    if checks_node:
        refuse_this_node(request)
    take_share_of_node(request.gpus)
    ranks = group_ranks()
    board.post.remote(name, STARTED)
    if ranks.world > 1:
        error: str | None = ranks.once(lambda: ray.get(board.error.remote(name)))
        if error is not None:
            return TrialReport(STARTED, {}, 0.0, error=error)
    with passing_on_warnings(board.warn.remote) if ranks.rank == 0 else nullcontext():
        report = run_one(request, lambda epoch: board.post.remote(name, epoch))
    if ranks.world > 1 and report.error is not None:
        ray.get(board.fail.remote(name, report.error))
    return report


def names_of(requests: Sequence[TrialRequest]) -> list[str]:
    """Return what each run is called while it goes on; no two have the same name."""
    several = len({request.study.name for request in requests}) > 1
    return [
        f"trial {request.trial}, seed {request.experiment.seed}"
        + (f" of {shown_name(request.study.name)}" if several else "")
        for request in requests
    ]


def _run_all(
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
