"""The plan of a sweep: everything it will do, resolved and checked, as plain data."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from contrasweep.data import data_root as folder_of_data
from contrasweep.data import dataset_spec
from contrasweep.names import counted
from contrasweep.notebook_tables import html_table
from contrasweep.search_spaces import Scalar, Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment, Value
from contrasweep.tuning.experiment.conditions import Condition
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.metrics import goals, search_metrics
from contrasweep.tuning.planning.halving import Halving
from contrasweep.tuning.planning.request import Scheduler
from contrasweep.tuning.planning.resolve import check_experiment
from contrasweep.tuning.planning.resources import Machine, Resources, gpus_for, resources_for
from contrasweep.tuning.planning.setup import scored_images
from contrasweep.tuning.planning.trial_limits import Limits
from contrasweep.tuning.provenance import origin_of_results
from contrasweep.tuning.results.encoders import KEPT
from contrasweep.tuning.results.trials import refuse_other_version
from contrasweep.tuning.search import MirrorOf, PastTrial, SearchStudy
from contrasweep.tuning.search.looks import looks
from contrasweep.tuning.store import SearchRecord, StudyRecord, StudySchema, WarmStartRecord, WarmTrialRecord


@dataclass(frozen=True)
class WarmStart:
    """Earlier studies: their trials that fit a new one, from which it learns, with remarks for its user.

    The new study neither counts them nor has rows of them. Its record keeps them, so that it resumes to the
    same search whatever became of the earlier studies.
    """

    studies: tuple[str, ...] = ()
    trials: tuple[PastTrial, ...] = ()
    remarks: tuple[str, ...] = ()

    def record(self) -> WarmStartRecord:
        """Return the part of the new study's record that keeps these trials."""
        trials = (
            WarmTrialRecord.model_validate(
                {"values": t.values, "state": t.state, "epochs": t.epochs, "value": t.value}
                | {"violations": t.violations}
            )
            for t in self.trials
        )
        return WarmStartRecord(studies=self.studies, trials=tuple(trials))

    @classmethod
    def of_record(cls, content: WarmStartRecord) -> "WarmStart":
        """Return the warm start that `record` wrote."""
        trials = tuple(
            PastTrial(number, held.values, held.state, held.epochs, held.value, held.violations)
            for number, held in enumerate(content.trials)
        )
        return cls(content.studies, trials)


@dataclass(frozen=True, repr=False)
class SweepPlan:
    """One study: its search space, base experiment, search rules and resources.

    `given` holds the values that the user set; they hold in every trial. `space` holds the parameters left
    to search. The search maximises the merits (`results.best`) of `metrics`; several metrics give a Pareto
    front. The scheduler compares trials by `asha_metric`, in its cheap form, which is known after every
    epoch. The encoders of the best `keep_weights` trials stay in the store. After the defaults, the
    configurations `enqueued` run before the sampler's proposals. The best trial is looked for among those
    that `keep` all conditions.
    """

    name: str
    method: str
    dataset: str
    space: Space
    given: Mapping[str, Value | tuple[Value, ...]]
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
    halving: Halving = field(default_factory=Halving)
    limits: Limits = field(default_factory=Limits)
    keep_weights: int = KEPT
    storage: str | None = None
    warm: WarmStart = field(default_factory=WarmStart)
    enqueued: tuple[Mapping[str, Scalar], ...] = ()
    keep: tuple[Condition, ...] = ()
    command: str = ""
    created: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __repr__(self) -> str:
        """Return the study, what is searched, and the budget."""
        return f"SweepPlan({self._what}, {self._budget})"

    def _repr_html_(self) -> str:
        """Return what is searched as a table, for notebooks, with the budget below it."""
        words = self.space.in_words()
        rows = [{"parameter": one.name, "values": words[one.name]} for one in self.space.searched]
        search = f"sampler {self.sampler}, scheduler {self.scheduler}; by {', '.join(self.metrics)}"
        return html_table(self._what, rows, f"{self._budget}; {search}.", most=len(rows))

    @property
    def _what(self) -> str:
        return f"{self.name}: {self.method} on {self.dataset}"

    @property
    def _budget(self) -> str:
        trials = f"{counted(self.trials, 'trial')} of at most {counted(self.experiment.epochs, 'epoch')}"
        return f"{trials}, {self.resources.concurrency} at once, {self.resources.in_words}"

    @property
    def metric(self) -> str:
        """The metric that the search maximises; the first one if there are several."""
        return self.metrics[0]

    @cached_property
    def rung_metric(self) -> str:
        """The cheap form of the scheduler's metric, known after every epoch."""
        facts = dataset_spec(self.dataset, self.data_root)
        return goals(METHODS[self.method], facts, self.experiment.probes)[self.asha_metric]

    @property
    def rungs(self) -> tuple[int, ...]:
        """The epochs after which the scheduler compares trials; empty where it does not."""
        if self.scheduler == "none":
            return ()
        epochs, warmup = self.experiment.epochs, self.experiment.schedule.warmup_epochs
        return self.halving.rungs(epochs, warmup) if self.scheduler == "asha" else looks(epochs, warmup)

    def experiment_of(self, values: Mapping[str, Any]) -> Experiment:
        """Return the complete experiment of a trial with the proposed `values`, all active ones.

        Raises:
            InputError: a value is not allowed, or the settings do not fit together.
        """
        experiment = self.experiment.with_searched(self.space.names, values)
        check_experiment(experiment, self.data_root)
        return experiment

    def is_possible(self, values: Mapping[str, Any]) -> bool:
        """Return whether the proposed `values`, all active ones, give an experiment."""
        try:
            self.experiment_of(values)
        except InputError:
            return False
        return True

    def new_study(self, mirror: MirrorOf | None = None) -> SearchStudy:
        """Return a new search that proposes this plan's trials and copies them to `mirror`."""
        return SearchStudy(
            self.space,
            sampler=self.sampler,
            seed=self.seed,
            trials=self.trials,
            epochs=self.experiment.epochs,
            warmup=self.experiment.schedule.warmup_epochs,
            objectives=len(self.metrics),
            earlier=self.warm.trials,
            first=self.enqueued,
            possible=self.is_possible,
            mirror=mirror,
        )

    def record(self) -> StudyRecord:
        """Return the record of the study that the store keeps."""
        return StudyRecord(
            name=self.name,
            created=self.created,
            command=self.command,
            method=self.method,
            dataset=self.dataset,
            experiment=self.experiment,
            space=self.space,
            search=SearchRecord(
                trials=self.trials,
                sampler=self.sampler,
                grid_points=self.grid_points,
                scheduler=self.scheduler,
                metric=",".join(self.metrics),
                asha_metric=self.asha_metric,
                rung_metric=self.rung_metric,
                eta=self.halving.eta,
                grace=self.halving.grace,
                seed=self.seed,
                seeds=self.seeds,
                storage=self.storage,
                warm_start=self.warm.record(),
                enqueued=self.enqueued,
                given=dict(self.given),
                concurrency=self.resources.allowed or self.resources.concurrency,
                cpus=self.resources.cpus,
                workers=self.resources.workers,
                gpus=self.resources.gpus,
                **asdict(self.limits),
                keep_weights=self.keep_weights,
                data_root=str(self.data_root),
                validation_images=scored_images(self.experiment, self.seeds, self.data_root) or None,
                keep=self.keep,
            ),
            columns=StudySchema(
                hyperparameters=self.space.types(),
                metrics=search_metrics(
                    METHODS[self.method],
                    dataset_spec(self.dataset, self.data_root),
                    self.experiment.probes,
                    halves=self.experiment.validation.halves,
                ),
            ),
            **origin_of_results(),
        )


def plan_of(
    record: StudyRecord,
    results: str,
    *,
    data_root: Path | None = None,
    concurrency: int | None = None,
    workers: int | None = None,
    gpus: float | None = None,
    device: str | None = None,
    machine: Machine | None = None,
    extend: int = 0,
) -> SweepPlan:
    """Return the plan of a stored study, fitted to the machine on which it will go on.

    Args:
        record: the study.
        results: the results folder.
        data_root, workers, gpus: each replaces what the study has recorded.
        device: decides about the GPUs anew; None goes on with those that are recorded.
        concurrency: the same; the default is the recorded number, or fewer if there is room for fewer.
        machine: where trials run; this machine by default.
        extend: how many trials to add to those that the study plans.

    Raises:
        InputError: the study holds final runs, another version made it, its method or dataset is not
            installed here, or the machine lacks the resources of one trial.
        DatasetMissing: the facts of its dataset are in files that are missing.
    """
    search = record.require_search()
    refuse_other_version(record)
    root = data_root or (None if search.data_root is None else Path(search.data_root))
    check_experiment(record.experiment, root)
    workers = workers or search.workers
    if device is not None:
        gpus = gpus_for(device, gpus, machine)
    gpus = search.gpus if gpus is None else gpus
    at_once = concurrency or search.concurrency
    if not concurrency and not (machine and machine.autoscales):
        fit = resources_for(None, search.cpus, workers, gpus, machine=machine).concurrency
        at_once = min(at_once, fit)
    trials = search.trials + extend
    return SweepPlan(
        name=record.name,
        method=record.method,
        dataset=record.dataset,
        space=record.space,
        given=search.given,
        experiment=record.experiment,
        trials=trials,
        sampler=search.sampler,
        scheduler=search.scheduler,
        metrics=search.metrics,
        asha_metric=search.asha_metric or record.metric,
        seed=search.seed,
        resources=resources_for(at_once, search.cpus, workers, gpus, most=trials, machine=machine),
        results=results,
        data_root=folder_of_data(root).absolute(),
        seeds=search.seeds,
        grid_points=search.grid_points,
        halving=Halving(search.eta, search.grace),
        limits=Limits(**{one.name: getattr(search, one.name) for one in fields(Limits)}),
        keep_weights=search.keep_weights,
        storage=search.storage,
        warm=WarmStart.of_record(search.warm_start),
        enqueued=search.enqueued,
        keep=search.keep,
        command=record.command,
        created=record.created,
    )
