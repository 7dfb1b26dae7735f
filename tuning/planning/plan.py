"""The plan of a sweep: everything it will do, resolved and checked, as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from contrasweep.data import DatasetFacts, dataset_spec
from contrasweep.data import data_root as folder_of_data
from contrasweep.names import counted
from contrasweep.notebook_tables import html_table
from contrasweep.search_spaces import Space
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.experiment.schedulers import stops_by_curves, stops_by_rank
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.metrics import cheap_form, search_metrics
from contrasweep.tuning.objectives.prepared import spec_for
from contrasweep.tuning.planning.early_end import unreachable_stop_in_words
from contrasweep.tuning.planning.halving import Halving
from contrasweep.tuning.planning.kernel_scale import kernel_scale_in_words
from contrasweep.tuning.planning.resolve import check_experiment, experiment_with, is_possible
from contrasweep.tuning.planning.resources import NOTHING_ASKED, AskedResources, Resources
from contrasweep.tuning.planning.setup import (
    few_images_in_words,
    few_steps_in_words,
    late_rung_in_words,
    searched_views_in_words,
    setup_in_words,
    stops_before_end,
    unreached_in_words,
)
from contrasweep.tuning.planning.unused import idle_in_words, unused_in_words
from contrasweep.tuning.provenance import origin_of_results
from contrasweep.tuning.results.trials import refuse_other_version
from contrasweep.tuning.search import MirrorOf, PastTrial, SearchStudy
from contrasweep.tuning.search.decision_epochs import decision_epochs
from contrasweep.tuning.store import SearchRecord, StudyRecord, StudySchema, WarmStartRecord
from contrasweep.tuning.training.devices import device_of


@dataclass(frozen=True, repr=False)
class SweepPlan:
    """One study: its search space, base experiment, search and resources.

    `space` holds the parameters left to search. `search` says how, in the form that the store keeps, with the
    trials of earlier studies that the search learns from: so it resumes to the same search whatever became of
    these studies. `remarks` tell users what was taken of them. The merits (`results.best`) of its metrics
    are maximised.

    `resources` are those of this driver; `search` keeps what the first one was given.
    """

    name: str
    method: str
    dataset: str
    space: Space
    experiment: Experiment
    search: SearchRecord
    resources: Resources
    results: str
    data_root: Path
    remarks: tuple[str, ...] = ()
    command: str = ""
    created: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __repr__(self) -> str:
        """Return the study, what is searched, and the budget."""
        return f"SweepPlan({self._what}, {self._budget})"

    def _repr_html_(self) -> str:
        """Return what is searched as a table, for notebooks, with the budget below it."""
        words = self.space.in_words()
        rows = [{"parameter": one.name, "values": words[one.name]} for one in self.space.searched]
        search, by = self.search, ", ".join(self.search.metrics)
        rules = f"sampler {search.sampler}, scheduler {search.scheduler}; by {by}"
        return html_table(self._what, rows, f"{self._budget}; {rules}.", most=len(rows))

    @property
    def _what(self) -> str:
        return f"{self.name}: {self.method} on {self.dataset}"

    @property
    def _budget(self) -> str:
        trials, most = counted(self.search.trials, "trial"), counted(self.experiment.epochs, "epoch")
        return f"{trials} of at most {most}, {self.resources.concurrency} at once, {self.resources.in_words}"

    @property
    def metric(self) -> str:
        """The metric that the search maximises; the first one if there are several."""
        return self.search.metrics[0]

    @property
    def rung_metric(self) -> str:
        """The cheap form of the scheduler's metric, known after every epoch."""
        return self.search.rung_metric or self.metric

    @property
    def halving(self) -> Halving:
        """How `asha` compares trials."""
        return Halving(self.search.eta, self.search.grace)

    @property
    def rungs(self) -> tuple[int, ...]:
        """The epochs after which the scheduler compares trials; empty where it does not."""
        scheduler, epochs = self.search.scheduler, self.experiment.epochs
        warmup = self.experiment.schedule.warmup_epochs
        ranked = self.halving.rungs(epochs, warmup) if stops_by_rank(scheduler) else ()
        modelled = decision_epochs(epochs, warmup) if stops_by_curves(scheduler) else ()
        return tuple(sorted({*ranked, *modelled}))

    def rung_of(self, epoch: int | None) -> int | None:
        """Return the rung at which a trial was stopped that has trained so many epochs."""
        return max((rung for rung in self.rungs if rung <= (epoch or 0)), default=None)

    @property
    def stops_early(self) -> bool:
        """Whether the scheduler may stop a trial before its last epoch."""
        return stops_before_end(self.rungs, self.experiment.epochs)

    @cached_property
    def _facts(self) -> DatasetFacts:
        """The facts of the dataset; to read them, a folder of images is listed."""
        return spec_for(self.experiment, self.data_root)

    @property
    def setup(self) -> str:
        """What a trial consists of, as one line."""
        searched = [one.name for one in self.space.searched]
        return setup_in_words(self.experiment, self._facts, device_of(self.resources.gpus), searched)

    @property
    def warnings(self) -> list[str]:
        """What may spoil the search: too few images, steps or epochs; settings without effect."""
        one, search, searched = self.experiment, self.search, [one.name for one in self.space.searched]
        told = [
            few_images_in_words(one, self._facts),
            few_steps_in_words(one, self._facts),
            late_rung_in_words(self.rungs, search.scheduler, one),
            *unreached_in_words(one),
            *unused_in_words(one, dict.fromkeys([*search.given, *self.space.names]), self._facts, searched),
            *idle_in_words(self.space, METHODS[self.method].search_space()),
            unreachable_stop_in_words(search),
            *kernel_scale_in_words(one, self._facts, self.space),
            searched_views_in_words((*search.metrics, search.compared_by), self.space),
        ]
        return [line for line in told if line is not None]

    def with_search(self, **changes: Any) -> "SweepPlan":
        """Return the plan with some fields of its search changed."""
        return replace(self, search=self.search.model_copy(update=changes))

    def experiment_of(self, values: Mapping[str, Any]) -> Experiment:
        """Return the complete experiment of a trial with the proposed `values`, all active ones.

        Raises:
            InputError: a value is not allowed, or the settings do not fit together.
        """
        return experiment_with(self.experiment, self.space, values, self.data_root)

    def is_possible(self, values: Mapping[str, Any]) -> bool:
        """Return whether the proposed `values`, all active ones, give an experiment."""
        return is_possible(self.experiment, self.space, values, self.data_root)

    def new_study(self, mirror: MirrorOf | None = None) -> SearchStudy:
        """Return a new search that proposes this plan's trials and copies them to `mirror`."""
        search = self.search
        return SearchStudy(
            self.space,
            sampler=search.sampler,
            seed=search.seed,
            trials=search.trials,
            epochs=self.experiment.epochs,
            warmup=self.experiment.schedule.warmup_epochs,
            objectives=len(search.metrics),
            earlier=learned_from(search.warm_start),
            first=search.enqueued,
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
            search=self.search,
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
    asked: AskedResources = NOTHING_ASKED,
    *,
    data_root: Path | None = None,
    extend: int = 0,
) -> SweepPlan:
    """Return the plan of a stored study, fitted to the machine on which it will go on.

    Args:
        record: the study.
        results: the results folder.
        asked: what replaces the recorded resources, except for the cores, which stay. A device decides about
            the GPUs anew. Without a number of trials at once, it is the recorded one, or as many as fit.
        data_root: replaces the recorded folder of the datasets.
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
    search = search.model_copy(
        update={
            "trials": search.trials + extend,
            # An extension is a plan of its own, and so is the one that is taken up again.
            "not_begun": 0 if extend else search.not_begun,
            "rung_metric": search.rung_metric or cheap_form(search.compared_by, record.columns.metrics),
        }
    )
    return SweepPlan(
        name=record.name,
        method=record.method,
        dataset=record.dataset,
        space=record.space,
        experiment=record.experiment,
        search=search,
        resources=_resources_again(search, asked),
        results=results,
        data_root=folder_of_data(root).absolute(),
        command=record.command,
        created=record.created,
    )


def _resources_again(search: SearchRecord, asked: AskedResources) -> Resources:
    """Return the resources of a stored search that goes on; see `plan_of`."""
    gpus = search.gpus if asked.gpus is None and asked.device is None else asked.gpus
    asked = replace(asked, cpus=search.cpus, workers=asked.workers or search.workers, gpus=gpus)
    if asked.concurrency is None:
        autoscales = asked.machine is not None and asked.machine.autoscales
        at_once = search.concurrency if autoscales else min(search.concurrency, asked.resources().concurrency)
        asked = replace(asked, concurrency=at_once)
    return asked.resources(search.trials)


def learned_from(warm: WarmStartRecord) -> tuple[PastTrial, ...]:
    """Return the trials of earlier studies as the search takes them: numbered on their own."""
    return tuple(
        PastTrial(number, one.values, one.state, one.epochs, one.value, one.violations)
        for number, one in enumerate(warm.trials)
    )
