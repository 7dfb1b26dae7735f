"""A sweep before it starts: all that it will do, resolved and checked, as plain data. No Ray, no training."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from data import DATASETS, check_available
from search_spaces import Space
from tuning.config import Experiment, Value
from tuning.errors import InputError, unknown_name
from tuning.provenance import git_revision, host_name, package_versions, same_series
from tuning.resolve import check_names, effective_space, pin_values, preset_settings, resolve
from tuning.search.sampler import checked_sampler
from tuning.store import StudyRecord, StudySchema, check_study_name
from tuning.training.metrics import FAST_METRIC, search_metrics

Scheduler = Literal["asha", "none"]
SCHEDULERS: tuple[Scheduler, ...] = ("asha", "none")


@dataclass(frozen=True)
class Resources:
    """What trials run on: `concurrency` of them at once, each with `cpus` cores and as many threads."""

    concurrency: int
    cpus: int = 1


@dataclass(frozen=True)
class SweepPlan:
    """One study: what is searched, around which experiment, by which rules, on which resources.

    `given` are the values the user set: they hold in every trial. `space` is what is left to search. `metric`
    is what the search maximises; `rung_metric`, its cheap form, is what the scheduler compares after an
    epoch.
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
    metric: str
    seed: int
    resources: Resources
    results: str
    data_root: Path | None
    command: str = ""
    created: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def rung_metric(self) -> str:
        """The cheap form of the metric, known after every epoch."""
        return FAST_METRIC[self.metric]

    def experiment_of(self, values: Mapping[str, Any]) -> Experiment:
        """Return the complete experiment of a trial with the proposed `values`."""
        return resolve(self.method, self.dataset, {**self.given, **values}, space=self.space)

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
                "scheduler": self.scheduler,
                "metric": self.metric,
                "rung_metric": self.rung_metric,
                "mode": "max",
                "seed": self.seed,
                "given": dict(self.given),
                "concurrency": self.resources.concurrency,
                "cpus": self.resources.cpus,
                "data_root": None if self.data_root is None else str(self.data_root),
            },
            columns=StudySchema(
                hyperparameters=self.space.types(),
                metrics=search_metrics(DATASETS[self.dataset].condition_dim is not None),
            ),
            versions=package_versions(),
            git_revision=git_revision(),
            host=host_name(),
        )


def plan_sweep(
    method: str,
    dataset: str,
    *,
    trials: int = 24,
    epochs: int | None = None,
    values: Mapping[str, Value] | None = None,
    space: Space | None = None,
    use_preset: bool = False,
    sampler: str = "tpe",
    scheduler: str = "asha",
    metric: str = "val.accuracy",
    seed: int = 0,
    concurrency: int | None = None,
    cpus_per_trial: int = 1,
    data_root: Path | None = None,
    results: str | Path = "results",
    name: str | None = None,
    command: str = "",
) -> SweepPlan:
    """Return the checked plan of a sweep.

    Args:
        method: a registered method.
        dataset: a registered dataset, whose files must be there.
        trials: how many configurations are tried, the defaults among them.
        epochs: of a trial that is not stopped early; by default the experiment's.
        values: settings that hold in every trial; one that the space would search is searched no more.
        space: in place of the method's own.
        use_preset: start from the papers' settings for this method and dataset.
        sampler: `tpe` or `random`.
        scheduler: `asha` stops weak trials early, `none` does not.
        metric: what is maximised, read on the validation split.
        seed: of the proposals.
        concurrency: trials at once; by default as many as the machine has cores for.
        cpus_per_trial: cores, and threads, of a trial.
        data_root: the folder of the datasets.
        results: the results folder or URI.
        name: of the study; by default `METHOD-DATASET-` and the time.
        command: the command line, for the record.

    Raises:
        InputError, ValueError: something given is wrong; nothing was started or written.
    """
    check_names(method, dataset)
    _at_least_one("trials", trials)
    _at_least_one("epochs", 1 if epochs is None else epochs)
    _at_least_one("cpus per trial", cpus_per_trial)
    if scheduler not in SCHEDULERS:
        raise unknown_name("scheduler", scheduler, SCHEDULERS)
    if metric not in FAST_METRIC:
        raise unknown_name("metric", metric, FAST_METRIC)
    given = {**(preset_settings(method, dataset) if use_preset else {}), **(values or {})}
    given |= {} if epochs is None else {"epochs": epochs}
    experiment = resolve(method, dataset, given, space=space)
    remaining = pin_values(effective_space(method, space), given)
    _check_metric(metric, dataset)
    check_available(dataset, data_root)
    created = datetime.now(UTC)
    return SweepPlan(
        name=check_study_name(name or f"{method}-{dataset}-{created:%Y%m%d-%H%M%S}"),
        method=method,
        dataset=dataset,
        space=remaining,
        given=given,
        experiment=experiment,
        trials=trials,
        sampler=checked_sampler(sampler),
        scheduler="asha" if scheduler == "asha" else "none",
        metric=metric,
        seed=seed,
        resources=_resources(concurrency, cpus_per_trial, trials),
        results=str(results),
        data_root=data_root,
        command=command,
        created=created,
    )


def plan_of(record: StudyRecord, results: str, data_root: Path | None = None) -> SweepPlan:
    """Return the plan that a stored study was started with; `data_root`, if given, replaces its own."""
    search = record.search
    root = search["data_root"]
    return SweepPlan(
        name=record.name,
        method=record.method,
        dataset=record.dataset,
        space=Space.parse(record.space, f"the space of study {record.name}"),
        given=search["given"],
        experiment=Experiment.model_validate(record.experiment),
        trials=search["trials"],
        sampler=search["sampler"],
        scheduler=search["scheduler"],
        metric=search["metric"],
        seed=search["seed"],
        resources=Resources(search["concurrency"], search["cpus"]),
        results=results,
        data_root=data_root or (Path(root) if root else None),
        command=record.command,
        created=record.created,
    )


def refuse_difference(plan: SweepPlan, record: StudyRecord, expected: Mapping[str, Any]) -> None:
    """Refuse to go on with a study that is not what the caller believes it to be.

    Args:
        plan: of the stored study.
        record: the stored study.
        expected: what the caller gave: `method`, `dataset`, `space` (a `Space`), `values`, or a rule of the
            search (`trials`, `sampler`, ...); what is absent or None was not given.

    Raises:
        InputError: something differs, or another version of contrasweep made the study.
    """
    stored = {**record.search, "method": record.method, "dataset": record.dataset}
    differences = []
    for name, value in expected.items():
        if name == "space" and value is not None:
            differences += pin_values(effective_space(plan.method, value), plan.given).difference(plan.space)
        elif name == "values":
            changed = [path for path in value or {} if plan.given.get(path) != value[path]]
            differences += [f"{path} was {plan.given.get(path)}, is {value[path]}" for path in changed]
        elif value is not None and stored[name] != value:
            differences.append(f"{name} was {stored[name]}, is {value}")
    there = record.versions.get("contrasweep", "unknown")
    here = package_versions().get("contrasweep", "unknown")
    if not same_series(there, here):
        differences.append(f"it was made by contrasweep {there}, this is {here}")
    if differences:
        raise InputError(f"study {plan.name} cannot go on: {'; '.join(differences)}. Start a new one.")


def _at_least_one(what: str, count: int) -> None:
    if count < 1:
        raise InputError(f"{what} must be at least 1, given {count}")


def _check_metric(metric: str, dataset: str) -> None:
    if re.search("colour", metric) and DATASETS[dataset].condition_dim is None:
        raise InputError(f"{dataset} has no colour to measure {metric} by; use val.accuracy")


def _resources(concurrency: int | None, cpus: int, trials: int) -> Resources:
    cores = available_cores()
    if cpus > cores:
        raise InputError(f"{cpus} cpus per trial were asked for; this machine has {cores}")
    if concurrency is None:
        concurrency = cores // cpus
    _at_least_one("concurrency", concurrency)
    return Resources(min(concurrency, trials), cpus)


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
