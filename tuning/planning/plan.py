"""A sweep before it starts: all that it will do, resolved and checked, as plain data. No Ray, no training."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from contrasweep.data import dataset_spec
from contrasweep.search_spaces import Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment, Value, parse_experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.metrics import goals, search_metrics
from contrasweep.tuning.planning.limits import Limits
from contrasweep.tuning.planning.machine import Machine
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.planning.resources import Resources, resources_for
from contrasweep.tuning.planning.start_configurations import WarmStart
from contrasweep.tuning.provenance import git_revision, host_name, package_versions, same_series
from contrasweep.tuning.search import MirrorOf, SearchStudy
from contrasweep.tuning.store import StudyRecord, StudySchema

Scheduler = Literal["asha", "none"]
FINAL_SUFFIX = "-final"
"""The final runs of a study are a study of their own, with this behind its name."""


@dataclass(frozen=True)
class SweepPlan:
    """One study: what is searched, around which experiment, by which rules, on which resources.

    `given` are the values the user set: they hold in every trial. `space` is what is left to search.
    `metrics` are what the search maximises: one, or several that are weighed against each other. The
    scheduler compares trials by `asha_metric`, in the cheap form that is known after every epoch.
    """

    name: str
    method: str
    dataset: str
    space: Space
    given: Mapping[str, Value]
    experiment: Experiment
    trials: int
    sampler: str
    scheduler: Scheduler
    metrics: tuple[str, ...]
    asha_metric: str
    seed: int
    resources: Resources
    results: str
    data_root: Path
    seeds: int = 1
    grid_points: int | None = None
    limits: Limits = field(default_factory=Limits)
    storage: str | None = None
    warm: WarmStart = field(default_factory=WarmStart)
    command: str = ""
    created: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def metric(self) -> str:
        """The metric that is maximised; of several, the first."""
        return self.metrics[0]

    @cached_property
    def rung_metric(self) -> str:
        """The cheap form of the scheduler's metric, known after every epoch."""
        return goals(METHODS[self.method], dataset_spec(self.dataset, self.data_root))[self.asha_metric]

    def experiment_of(self, values: Mapping[str, Any]) -> Experiment:
        """Return the complete experiment of a trial with the proposed `values`."""
        outside = {path: value for path, value in self.given.items() if path not in self.space}
        return resolve(
            self.method, self.dataset, {**outside, **values}, space=self.space, data_root=self.data_root
        )

    def new_study(self, mirror: MirrorOf | None = None) -> SearchStudy:
        """Return the search that proposes this plan's trials, still empty; `mirror` is where it is copied."""
        return SearchStudy(
            self.space,
            sampler=self.sampler,
            seed=self.seed,
            trials=self.trials,
            objectives=len(self.metrics),
            earlier=self.warm.trials,
            mirror=mirror,
        )

    def record(self) -> StudyRecord:
        """Return what the store keeps of the study."""
        return StudyRecord(
            name=self.name,
            created=self.created,
            command=self.command,
            method=self.method,
            dataset=self.dataset,
            experiment=self.experiment.model_dump(mode="json"),
            space={parameter.name: parameter.to_form() for parameter in self.space.parameters},
            search={
                "trials": self.trials,
                "sampler": self.sampler,
                "grid_points": self.grid_points,
                "scheduler": self.scheduler,
                "metric": ",".join(self.metrics),
                "asha_metric": self.asha_metric,
                "rung_metric": self.rung_metric,
                "mode": "max",
                "seed": self.seed,
                "seeds": self.seeds,
                "storage": self.storage,
                "warm_start": self.warm.record(),
                "given": dict(self.given),
                "concurrency": self.resources.concurrency,
                "cpus": self.resources.cpus,
                "workers": self.resources.workers,
                "gpus": self.resources.gpus,
                "max_failures": self.limits.max_failures,
                "trial_timeout": self.limits.trial_timeout,
                "data_root": str(self.data_root),
            },
            columns=StudySchema(
                hyperparameters=self.space.types(),
                metrics=search_metrics(METHODS[self.method], dataset_spec(self.dataset, self.data_root)),
            ),
            versions=package_versions(),
            git_revision=git_revision(),
            host=host_name(),
        )


def plan_of(
    record: StudyRecord,
    results: str,
    *,
    data_root: Path | None = None,
    concurrency: int | None = None,
    workers: int | None = None,
    gpus: float | None = None,
    machine: Machine | None = None,
) -> SweepPlan:
    """Return the plan that a stored study was started with, on this machine or another.

    Args:
        record: the study.
        results: the results folder.
        data_root: in place of the recorded one.
        concurrency: in place of the recorded one, which is never more than the cores there allow.
        workers: in place of the recorded number of processes a trial.
        gpus: in place of the recorded GPUs a worker.
        machine: where trials run; by default here.

    Raises:
        InputError: the study holds final runs, which are no search, or is of another version.
    """
    search = record.search
    if "given" not in search:
        searched = record.name.removesuffix(FINAL_SUFFIX)
        raise InputError(f"study {record.name} holds final runs; the study that was searched is {searched}")
    _refuse_version(record)
    workers = workers or search.get("workers", 1)
    gpus = search.get("gpus", 0.0) if gpus is None else gpus
    fit = resources_for(None, search["cpus"], workers, gpus, machine=machine).concurrency
    at_once = concurrency or min(search["concurrency"], fit)
    return SweepPlan(
        name=record.name,
        method=record.method,
        dataset=record.dataset,
        space=Space.parse(record.space, f"the space of study {record.name}"),
        given=search["given"],
        experiment=parse_experiment(record.experiment),
        trials=search["trials"],
        sampler=search["sampler"],
        scheduler=search["scheduler"],
        metrics=tuple(search["metric"].split(",")),
        asha_metric=search.get("asha_metric", search["metric"]),
        seed=search["seed"],
        resources=resources_for(
            at_once, search["cpus"], workers, gpus, most=search["trials"], machine=machine
        ),
        results=results,
        data_root=Path(search["data_root"]) if data_root is None else data_root.absolute(),
        seeds=search.get("seeds", 1),
        grid_points=search.get("grid_points"),
        limits=Limits(search.get("max_failures", 1), search.get("trial_timeout")),
        storage=search.get("storage"),
        warm=WarmStart.of_record(search["warm_start"]) if "warm_start" in search else WarmStart(),
        command=record.command,
        created=record.created,
    )


def _refuse_version(record: StudyRecord) -> None:
    there, here = record.versions.get("contrasweep", "unknown"), package_versions()["contrasweep"]
    if not same_series(there, here):
        raise InputError(
            f"study {record.name} was made by contrasweep {there}; this is {here}, "
            "which may read it differently"
        )
