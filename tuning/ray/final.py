"""Final runs: selected experiments on fresh seeds, each trained on all training images and tested once."""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray
import torch
from ray.exceptions import RayError

from contrasweep.tuning.errors import SweepFailed
from contrasweep.tuning.objectives.ranks import group_ranks
from contrasweep.tuning.planning.final_plan import FinalPlan, Selected, plan_final_runs, trial_and_seed
from contrasweep.tuning.planning.resources import Machine, Resources, resources_for
from contrasweep.tuning.planning.seeds import Follower
from contrasweep.tuning.planning.trial import DataCache, Trial, TrialReport, TrialRequest, end_from_outside
from contrasweep.tuning.ray.cluster import Needs, ray_session
from contrasweep.tuning.ray.trainer import cause_of, fit, reason_of
from contrasweep.tuning.results.final_runs import FinalRuns, completed_rows
from contrasweep.tuning.store import Heartbeat, ResultsStore, StoreUnavailable, TrialOvertaken, compact
from contrasweep.tuning.training.final_scores import FinalScores

Show = Callable[[int, int], None]


def final_runs(
    selected: Selected | Sequence[Selected],
    *,
    seeds: int = 5,
    first_seed: int | None = None,
    elsewhere: Collection[tuple[str, int]] = (),
    results: str | Path | None = None,
    data_root: Path | None = None,
    concurrency: int | None = None,
    cpus_per_run: int = 1,
    workers: int = 1,
    gpus_per_worker: float = 0.0,
    machine: Machine | None = None,
    command: str = "",
    show: Show | None = None,
) -> FinalRuns:
    """Run each configuration on `seeds` fresh seeds and score it on the test split.

    The runs use the whole training split, without a validation split, because nothing is selected any more.
    Runs that the store already holds are not repeated. Their study has the name of the searched one and
    `-final`.

    Args:
        selected: one or several of one study: from `SweepResult.best`, `best_trials` or `load_best`.
        seeds: how many runs each configuration gets.
        first_seed: the first seed; by default the one above the seeds of the search.
        elsewhere: runs that another study holds, each as the hash of its experiment and its seed. They are
            left out, and are not among the rows returned.
        results: the results folder; by default that of the selected trials, for configurations `results`.
        data_root: the folder of the datasets; by default the one of the search, if this machine has it.
        concurrency: how many runs at once; by default as many as the machine has cores for.
        cpus_per_run: cores, and threads, of each worker of a run.
        workers: how many processes train one run together.
        gpus_per_worker: GPUs of each worker, 0 to 1.
        machine: where the runs take place; by default this machine.
        command: the command line, for the record.
        show: called with the number of finished runs and the number of all.

    Raises:
        InputError: no seed, no configuration, or the final study holds runs of other settings.
        DatasetMissing: the dataset's files are not in place.
        SweepFailed: no run completed, or another driver has taken over the study.
    """
    resources = resources_for(concurrency, cpus_per_run, workers, gpus_per_worker, machine=machine)
    plan = plan_final_runs(
        selected,
        resources,
        seeds=seeds,
        first_seed=first_seed,
        elsewhere=elsewhere,
        results=results,
        data_root=data_root,
        command=command,
    )
    study, store = plan.record.name, ResultsStore(plan.location)
    with Heartbeat(plan.location, study) as heartbeat:
        _run_missing(plan, store, resources, heartbeat, show or (lambda done, of: None))
        compact(plan.location, study, by_driver=True)
    completed = completed_rows(store, study)
    keys = map(trial_and_seed, plan.requests)
    rows = [completed[key] for key in keys if key in completed]
    if not rows:
        raise SweepFailed(f"no final run completed; `contrasweep show {study}` shows the errors")
    return FinalRuns(study, rows, len(plan.requests) - len(rows))


def _run_missing(
    plan: FinalPlan, store: ResultsStore, resources: Resources, heartbeat: Heartbeat, show: Show
) -> None:
    study, of = plan.record.name, len(plan.requests)
    missing = plan.missing(completed_rows(store, study))
    at_once = replace(resources, concurrency=min(resources.concurrency, len(missing)))
    for done, _ in enumerate(_run_all(missing, at_once), of - len(missing) + 1):
        show(done, of)
        if not heartbeat.in_charge():
            raise SweepFailed(
                f"the final runs {study} stopped: another driver has taken them over. "
                "What was finished is kept; the same command goes on"
            )


def run_one(request: TrialRequest) -> TrialReport:
    """Train and test one configuration on one seed, from its checkpoint if an earlier attempt left one.

    Every rank of a group calls this function; the first one tests and writes.
    """
    torch.set_num_threads(max(1, int(request.cpus)))
    cache, ranks = DataCache(device=request.device), group_ranks()
    experiment = request.experiment
    data = cache.get(experiment, request.data_root)
    folder = f"exports/{request.study.name}/{request.trial:05d}-{experiment.seed}"

    def export(content: bytes) -> None:
        request.location.write(f"{folder}/encoder.safetensors", content)

    scores = FinalScores(experiment, request.data_root, data, export)
    trial: Trial | Follower = Follower(request, cache, ranks)
    if ranks.rank == 0:
        trial = Trial(request, cache, at_end=scores, ranks=ranks)
    report = trial.advance()
    while not report.finished and report.error is None:
        report = trial.advance()
    return report


def run_group(request: TrialRequest, resources: Resources, storage: Path) -> None:
    """Train and test one configuration on one seed, on several workers together."""
    fit(_run_rank, {"request": request}, resources, storage)


def _run_rank(config: dict[str, Any]) -> None:
    run_one(config["request"])


def _run_all(requests: Sequence[TrialRequest], resources: Resources) -> Iterator[TrialReport | None]:
    here = resources.concurrency == 1 and resources.workers == 1 and resources.address is None
    if not requests or here:
        yield from map(run_one, requests)
        return
    first = requests[0]
    needs = Needs(first.location, first.experiment.dataset, first.data_root)
    with ray_session(resources, needs) as scratch:
        start = _starter(resources, scratch / "train")
        waiting = deque(requests)
        running: dict[Any, TrialRequest] = {}
        while waiting or running:
            # Start no more groups than fit: a group that gets only some of its workers would wait for ever.
            while waiting and len(running) < resources.concurrency:
                request = waiting.popleft()
                running[start(request)] = request
            (ended,), _ = ray.wait(list(running))
            request = running.pop(ended)
            try:
                yield ray.get(ended)
            except RayError as error:
                cause = cause_of(error)
                if isinstance(cause, StoreUnavailable | TrialOvertaken):
                    raise cause from None
                # The death of one run's worker does not end the other runs.
                reason = reason_of(cause)
                end_from_outside(request, "failed", error=reason)
                yield TrialReport(0, {}, 0.0, error=reason)


def _starter(resources: Resources, storage: Path) -> Callable[[TrialRequest], Any]:
    """Return the function that starts a run on Ray: in one process, or in a group of workers."""
    if resources.workers == 1:
        return ray.remote(num_cpus=resources.cpus, num_gpus=resources.gpus, max_retries=1)(run_one).remote
    group = ray.remote(num_cpus=0, max_retries=1)(run_group)
    return lambda request: group.remote(request, resources, storage)
