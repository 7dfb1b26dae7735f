"""Final runs: a selected experiment on fresh seeds, trained on all training images, tested once each."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import ray
import torch
from ray.exceptions import RayError

from contrasweep.data import data_root as folder_of_data
from contrasweep.search_spaces import Scalar
from contrasweep.search_spaces.parameters import type_name
from contrasweep.tuning.errors import InputError, SweepFailed
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.metrics import final_metrics
from contrasweep.tuning.objectives.datasets import check_files, facts_of
from contrasweep.tuning.objectives.ranks import check_batch_size, group_ranks
from contrasweep.tuning.planning.best_config import BestConfig
from contrasweep.tuning.planning.follower import Follower
from contrasweep.tuning.planning.machine import Machine
from contrasweep.tuning.planning.plan import FINAL_SUFFIX
from contrasweep.tuning.planning.resources import Resources, resources_for
from contrasweep.tuning.planning.resume_check import without_column
from contrasweep.tuning.planning.trial import DataCache, Trial, TrialReport, TrialRequest, end_from_outside
from contrasweep.tuning.provenance import git_revision, host_name, package_versions
from contrasweep.tuning.ray.cluster import Needs
from contrasweep.tuning.ray.session import ray_session
from contrasweep.tuning.ray.trainer import cause_of, fit, reason_of
from contrasweep.tuning.store import (
    Heartbeat,
    Location,
    ResultsStore,
    StoreUnavailable,
    StudyRecord,
    StudySchema,
    TrialOvertaken,
    check_study_name,
    compact,
    open_location,
    save_study,
    study_names,
)
from contrasweep.tuning.training.final_scores import FinalScores


@dataclass(frozen=True)
class FinalRuns:
    """What final runs gave: the study that holds them, the rows that completed, how many did not."""

    study: str
    rows: list[dict[str, Any]]
    failed: int


def final_runs(
    configs: Sequence[BestConfig],
    *,
    seeds: int = 5,
    first_seed: int | None = None,
    elsewhere: Collection[tuple[str, int]] = (),
    results: str | Path = "results",
    data_root: Path | None = None,
    concurrency: int | None = None,
    cpus_per_run: int = 1,
    workers: int = 1,
    gpus_per_worker: float = 0.0,
    machine: Machine | None = None,
    command: str = "",
    show: Callable[[int, int], None] | None = None,
) -> FinalRuns:
    """Run each configuration on `seeds` fresh seeds and score it on the test split.

    The whole training split is used: nothing is selected any more, so no validation images are cut from it.
    Runs that the store holds already are not repeated. The study is named after the searched one, with
    `-final`.

    Args:
        configs: from one study, of `best_trials` or `load_best`.
        seeds: runs of each.
        first_seed: of them; by default one above those that the search used.
        elsewhere: runs, each as the hash of its experiment and its seed, that another study holds: they are
            left out here, and are not among the rows returned.
        results: the results folder.
        data_root: the folder of the datasets.
        concurrency: runs at once; by default as many as the machine has cores for.
        cpus_per_run: cores, and threads, of a run; of each of its workers, where there are several.
        workers: processes that train one run together.
        gpus_per_worker: GPUs of each, 0 to 1.
        machine: where they run; by default here.
        command: the command line, for the record.
        show: called with how many runs are done, and of how many.

    Raises:
        InputError: no seed, no configuration, or the study's name holds runs of something else.
        DatasetMissing: the dataset's files are not in place.
        SweepFailed: no run completed, or another driver took the study over.
    """
    resources = resources_for(concurrency, cpus_per_run, workers, gpus_per_worker, machine=machine)
    if seeds < 1:
        raise InputError(f"seeds must be at least 1, given {seeds}")
    if not configs or len({config.study for config in configs}) > 1:
        raise InputError("final runs take configurations of one study")
    for config in configs:
        check_batch_size(config.experiment.batch_size, workers)
    check_files(configs[0].experiment.dataset, data_root)
    location = open_location(results, writable=True)
    record = _study(location, configs, data_root, command)
    first = fresh_seed(configs, location) if first_seed is None else first_seed
    seeds_here = range(first, first + seeds)
    planned = _requests(location, record, configs, seeds_here, data_root, resources)
    requests = [one for one in planned if (one.experiment.identity(), one.experiment.seed) not in elsewhere]
    with Heartbeat(location, record.name) as heartbeat:
        store = ResultsStore(location)
        held = _completed(store, record.name)
        _refuse_others(requests, held)
        missing = [request for request in requests if _key(request) not in held]
        if missing:
            _refuse_new_metrics(record, data_root)
        resources = replace(resources, concurrency=min(resources.concurrency, len(missing)))
        done = len(requests) - len(missing)
        for _ in _run_all(missing, resources):
            done += 1
            if show is not None:
                show(done, len(requests))
            if not heartbeat.in_charge():
                raise SweepFailed(
                    f"the final runs {record.name} stopped: another driver has taken them over. "
                    "What was finished is kept; the same command goes on"
                )
        compact(location, record.name, by_driver=True)
    completed = _completed(store, record.name)
    rows = [completed[_key(request)] for request in requests if _key(request) in completed]
    if not rows:
        raise SweepFailed(f"no final run completed; `contrasweep show {record.name}` shows the errors")
    return FinalRuns(record.name, rows, len(requests) - len(rows))


def fresh_seed(configs: Iterable[BestConfig], location: Location) -> int:
    """Return the first seed above all that the searches for `configs` used, as far as the store has them."""
    used = {config.experiment.seed + config.seeds - 1 for config in configs}
    there = set(study_names(location))
    for study in {config.study for config in configs} & there:
        used |= set(ResultsStore(location).trials(study)["seed"].to_pylist())
    return max(used) + 1


def run_one(request: TrialRequest) -> TrialReport:
    """Train and test one configuration on one seed, from its checkpoint if an earlier attempt left one.

    Of several ranks, each calls this; the first one tests and writes.
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
            # No more groups than fit: one that waits for a part of its workers would wait for ever.
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
                # One run that its worker did not survive takes none of the others with it.
                reason = reason_of(cause)
                end_from_outside(request, "failed", error=reason)
                yield TrialReport(0, {}, 0.0, error=reason)


def _starter(resources: Resources, storage: Path) -> Callable[[TrialRequest], Any]:
    """Return what starts a run on Ray: in one process, or in a group whose owner takes nothing itself."""
    if resources.workers == 1:
        return ray.remote(num_cpus=resources.cpus, num_gpus=resources.gpus, max_retries=1)(run_one).remote
    group = ray.remote(num_cpus=0, max_retries=1)(run_group)
    return lambda request: group.remote(request, resources, storage)


def _requests(
    location: Location,
    record: StudyRecord,
    configs: Iterable[BestConfig],
    seeds: Iterable[int],
    data_root: Path | None,
    resources: Resources,
) -> Iterator[TrialRequest]:
    for config in configs:
        for seed in seeds:
            yield TrialRequest(
                location=location,
                study=record,
                trial=config.trial,
                experiment=config.experiment.with_values({"seed": seed, "validation.fraction": 0.0}),
                values=config.values,
                phase="final",
                data_root=folder_of_data(data_root).absolute(),
                cpus=resources.cpus,
                workers=resources.workers,
                gpus=resources.gpus,
            )


def _study(
    location: Location, configs: Sequence[BestConfig], data_root: Path | None, command: str
) -> StudyRecord:
    """Return the study of the final runs, made if it is not there."""
    first = configs[0]
    name = check_study_name(first.study + FINAL_SUFFIX)
    if name in study_names(location):
        return ResultsStore(location).study(name)
    values: dict[str, Scalar] = {}
    for config in configs:
        values |= config.values
    experiment = first.experiment
    spec = facts_of(experiment.dataset, data_root)
    record = StudyRecord(
        name=name,
        created=datetime.now(UTC),
        command=command,
        method=experiment.method,
        dataset=experiment.dataset,
        experiment=experiment.model_dump(mode="json"),
        space={},
        search={"metric": "test.accuracy"},
        columns=StudySchema(
            hyperparameters=_column_types(location, first.study, values),
            metrics=final_metrics(METHODS[experiment.method], spec),
        ),
        versions=package_versions(),
        git_revision=git_revision(),
        host=host_name(),
    )
    save_study(location, record)
    return record


def _refuse_new_metrics(record: StudyRecord, data_root: Path | None) -> None:
    """Raise InputError if runs would report what the study, of an earlier version, has no column for."""
    reported = final_metrics(METHODS[record.method], facts_of(record.dataset, data_root))
    differences = without_column(record, reported)
    if differences:
        raise InputError(
            f"study {record.name} cannot go on: {'; '.join(differences)}. Give another results folder."
        )


def _column_types(location: Location, study: str, values: Mapping[str, Scalar]) -> dict[str, Any]:
    """The searched study's columns where it is at hand: other trials of its may have other parameters."""
    types: dict[str, Any] = {name: type_name(value) for name, value in values.items()}
    if study in study_names(location):
        types = {**types, **ResultsStore(location).study(study).columns.hyperparameters}
    return types


def _key(request: TrialRequest) -> tuple[int, int]:
    return request.trial, request.experiment.seed


def _completed(store: ResultsStore, study: str) -> dict[tuple[int, int], dict[str, Any]]:
    rows = store.trials(study).to_pylist()
    return {(row["trial"], row["seed"]): row for row in rows if row["status"] == "completed"}


def _refuse_others(
    requests: Iterable[TrialRequest], held: Mapping[tuple[int, int], Mapping[str, Any]]
) -> None:
    for request in requests:
        row = held.get(_key(request))
        if row is not None and row["config"] != request.experiment.identity():
            raise InputError(
                f"study {request.study.name} holds trial {request.trial} with other settings: "
                "give the configuration another study name, or use another results folder"
            )
