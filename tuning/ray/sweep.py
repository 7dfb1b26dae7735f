"""Sweeps on Ray Tune, one study or several in turn: plan in, results in the store."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ParamSpec, overload

import pyarrow as pa
from ray.tune import Callback

from contrasweep.data import check_available
from contrasweep.tuning.errors import InputError, SweepFailed
from contrasweep.tuning.planning.plan import Limits, SweepPlan, plan_of
from contrasweep.tuning.planning.plan_sweep import check_batches, plan_sweep
from contrasweep.tuning.planning.resources import Machine
from contrasweep.tuning.planning.resume_check import Expected, refuse_difference
from contrasweep.tuning.ray.cluster import Needs, ray_session
from contrasweep.tuning.ray.searcher import Progress, StoreSearcher
from contrasweep.tuning.ray.tuner import Show, ShowProgress, tuner_of
from contrasweep.tuning.ray.watch import ForgetEnded, TrialWatch
from contrasweep.tuning.results.selection import SelectedTrial, best_trials
from contrasweep.tuning.results.trials import TrialOutcome, epoch_means, trial_outcomes
from contrasweep.tuning.search import PastTrial, sampler_of
from contrasweep.tuning.store import Heartbeat, Location, ResultsStore, StoreError, StoreUnavailable, compact
from contrasweep.tuning.store.filesystem import open_location
from contrasweep.tuning.store.study import StudyRecord, save_study, study_names
from contrasweep.tuning.store.tensorboard import write_experiment

log = logging.getLogger(__name__)

P = ParamSpec("P")
ShowStudy = Callable[[str, Progress], None]


@dataclass(frozen=True)
class SweepResult:
    """A sweep that has ended: its plan, and how many trials ended in which way."""

    plan: SweepPlan
    counts: Mapping[str, int]

    @overload
    def best(self, top: None = None, where: Sequence[str] = ()) -> SelectedTrial: ...

    @overload
    def best(self, top: int, where: Sequence[str] = ()) -> list[SelectedTrial]: ...

    def best(self, top: int | None = None, where: Sequence[str] = ()) -> SelectedTrial | list[SelectedTrial]:
        """Return the best trial, or with `top` a list of the best ones, for `final_runs`.

        Args:
            top: how many trials.
            where: conditions such as `val.colour_mse>=2000`; a trial that breaks one does not count.

        Raises:
            InputError, SweepFailed: see `results.selection.best_trials`.
        """
        found = best_trials(ResultsStore(self.plan.results), self.plan.name, 1 if top is None else top, where)
        return found[0] if top is None else found


def _planned_by(
    plan: Callable[P, SweepPlan],
) -> Callable[[Callable[[SweepPlan], SweepResult]], Callable[P, SweepResult]]:
    """Give a function of a plan the parameters of `plan`, also for type checkers and editors."""

    def decorate(run: Callable[[SweepPlan], SweepResult]) -> Callable[P, SweepResult]:
        @wraps(run)
        def planned(*given: P.args, **options: P.kwargs) -> SweepResult:
            return run(plan(*given, **options))

        planned.__dict__["__signature__"] = signature(plan).replace(return_annotation=SweepResult)
        planned.__annotations__ = {**plan.__annotations__, "return": SweepResult}
        return planned

    return decorate


@_planned_by(plan_sweep)
def sweep(plan: SweepPlan) -> SweepResult:
    """Plan and run a sweep; the arguments are those of `plan_sweep`.

    Raises:
        InputError, ValueError: an argument is wrong; nothing was started.
        StoreError: the results folder cannot be used, or it has a study of that name.
        SweepFailed: no trial finished.
    """
    return run_sweep(plan)


def run_sweep(plan: SweepPlan, show: Show | None = None) -> SweepResult:
    """Run a new study; `show` is called with the progress after every epoch of any trial.

    Raises:
        StoreError: the results folder cannot be used, or it has a study of that name.
        SweepFailed: no trial finished.
    """
    location, record = create_study(plan)
    return _run(plan, record, location, show)


def create_study(plan: SweepPlan) -> tuple[Location, StudyRecord]:
    """Write the record of a new study, which can then be run or resumed.

    Raises:
        StoreError: the results folder cannot be used, or it has a study of that name.
    """
    location = open_location(plan.results, writable=True)
    record = plan.record()
    save_study(location, record)
    if location.filesystem.type_name == "local":
        write_experiment(location.path(f"tensorboard/{record.name}"), record.columns)
    return location, record


def resume_sweep(
    name: str,
    results: str | Path = "results",
    *,
    data_root: Path | None = None,
    concurrency: int | None = None,
    workers: int | None = None,
    gpus_per_worker: float | None = None,
    machine: Machine | None = None,
    max_failures: int | None = None,
    trial_timeout: float | None = None,
    storage: str | None = None,
    expected: Expected | None = None,
    extend: int = 0,
    show: Show | None = None,
) -> SweepResult:
    """Go on with an interrupted study: finished trials stay, unfinished ones continue from their checkpoints.

    Args:
        name: the study.
        results: the results folder.
        data_root, concurrency, workers, gpus_per_worker, max_failures, trial_timeout, storage: as in
            `plan_sweep` and its `Limits`; each replaces what the study has recorded.
        machine: where trials run; by default this machine.
        expected: the options that the caller gave; a difference from the study is refused.
        extend: how many trials to add to those planned.
        show: called with the progress.

    Raises:
        InputError: the study differs from what was expected or is of another version (the message names the
            difference), or a batch does not divide among the workers.
        DatasetMissing: the dataset's files are not in place. Trials would fail and would not be tried again.
        StoreError: there is no such study, or its driver is alive.
        SweepFailed: no trial finished.
    """
    location = open_location(results, writable=True)
    store = ResultsStore(location)
    record = store.study(name)
    plan = plan_of(
        record,
        str(results),
        data_root=data_root,
        concurrency=concurrency,
        workers=workers,
        gpus=gpus_per_worker,
        machine=machine,
    )
    refuse_difference(plan, record, expected or Expected())
    if extend < 0:
        raise InputError(f"extend must be at least 1, given {extend}")
    if extend and sampler_of(plan.sampler).exhaustive:
        raise InputError(f"a grid has no further points: all {plan.trials} of study {name} are planned")
    check_batches(plan.experiment, plan.space, plan.resources.workers)
    check_available(plan.dataset, plan.data_root)
    limits = Limits(
        plan.limits.max_failures if max_failures is None else max_failures,
        plan.limits.trial_timeout if trial_timeout is None else trial_timeout,
    )
    plan = replace(plan, limits=limits, storage=storage or plan.storage)
    return _run(plan, record, location, show, extend)


def past_trials(held: Sequence[TrialOutcome], epochs: pa.Table, record: StudyRecord) -> list[PastTrial]:
    """Return the trials `held` by the store in the form of the search: scores by epoch, and final values.

    Epoch 0, the untrained encoder, is left out, because running trials do not report it to the search either.
    """
    curves = epoch_means(epochs, record, record.rung_metric)
    metrics = record.require_search().metrics
    return [
        PastTrial(
            one.trial,
            one.values,
            one.status,
            curves[one.trial].after(0) if one.trial in curves else {},
            tuple(one.mean(metric) for metric in metrics),
        )
        for one in held
    ]


def _run(
    plan: SweepPlan, record: StudyRecord, location: Location, show: Show | None, extend: int = 0
) -> SweepResult:
    with ExitStack() as stack:
        heartbeat = stack.enter_context(Heartbeat(location, plan.name))
        if extend:
            plan = replace(plan, trials=plan.trials + extend)
            record = record.with_search(trials=plan.trials)
            save_study(location, record, replace=True)
        # Read here: now no other driver can be at work on the study.
        tables = ResultsStore(location).tables(plan.name)
        held = trial_outcomes(tables.trials, record)
        past = past_trials(held, tables.epochs, record)
        crashes = Path(stack.enter_context(TemporaryDirectory(prefix="contrasweep-crashes-")))
        watch = TrialWatch(plan.limits.trial_timeout, crashes)
        searcher = StoreSearcher(
            plan, record, location, past, in_charge=heartbeat.in_charge, cause=watch.cause, crashes=crashes
        )
        searcher.settle(held)
        if sum(not trial.unfinished for trial in past) < plan.trials:
            _tune(plan, searcher, past, [watch, ForgetEnded(), ShowProgress(searcher, show)], location)
        try:
            compact(location, plan.name, by_driver=True)
        except StoreUnavailable as error:
            merge = "`contrasweep compact` merges them"
            log.warning("The results are whole, but in many files (%s): %s", merge, error)
    counts = searcher.progress.counts
    if not counts.get("completed"):
        failed = f"contrasweep show {plan.name} --results {plan.results}"
        ended = ", ".join(f"{count} {status}" for status, count in sorted(counts.items())) or "none ran"
        raise SweepFailed(f"no trial of {plan.name} finished ({ended}); `{failed}` shows why")
    return SweepResult(plan, counts)


def _tune(
    plan: SweepPlan,
    searcher: StoreSearcher,
    past: list[PastTrial],
    callbacks: list[Callback],
    location: Location,
) -> None:
    """Run the trials that have not ended."""
    needs = Needs(location, plan.dataset, plan.data_root)
    with ray_session(plan.resources, needs) as scratch:
        tuner_of(plan, searcher, past, scratch, callbacks).fit()
    if searcher.stopped_by is not None:
        go_on = f"contrasweep sweep {plan.method} --name {plan.name} --results {plan.results} --resume"
        raise SweepFailed(
            f"the sweep {plan.name} stopped: {searcher.stopped_by}. "
            f"What was finished is kept; `{go_on}` goes on"
        )


@dataclass(frozen=True)
class GroupResult:
    """The sweeps in which a trial finished, and by study, why the others failed."""

    results: tuple[SweepResult, ...]
    failed: Mapping[str, str] = field(default_factory=dict)


def study_of(prefix: str, method: str) -> str:
    """Return the name of a method's study in a group of studies."""
    return f"{prefix}-{method}"


def sweep_group(
    plans: Sequence[SweepPlan], show: ShowStudy | None = None, machine: Machine | None = None
) -> GroupResult:
    """Run new studies one after the other; all are created first, so that all can be resumed.

    Args:
        plans: the plans of the studies, all in one results folder.
        show: called with the name of a study and its progress.
        machine: where trials run, the same as in the plans.

    Raises:
        InputError: a method is given twice.
        StoreError: the results folder cannot be used, or it has a study with one of the names. No study is
            created then.
    """
    names = [plan.name for plan in plans]
    if len(set(names)) < len(names):
        raise InputError(f"given {', '.join(plan.method for plan in plans)}; allowed: each method once")
    taken = set(study_names(open_location(plans[0].results))).intersection(names)
    if taken:
        raise StoreError(f"{plans[0].results} has {', '.join(sorted(taken))}; resume, or choose another name")
    for plan in plans:
        create_study(plan)
    return resume_group(names, plans[0].results, show=show, data_root=plans[0].data_root, machine=machine)


def resume_group(
    names: Sequence[str],
    results: str | Path,
    *,
    expected: Mapping[str, Expected] | None = None,
    show: ShowStudy | None = None,
    **options: Any,
) -> GroupResult:
    """Go on with studies one after the other; a study that fails does not stop the next.

    Args:
        names: the names of the studies.
        results: the results folder.
        expected: by study, the `expected` of `resume_sweep`.
        show: called with the name of a study and its progress.
        options: the other options of `resume_sweep`.

    Raises:
        InputError, StoreError: see `resume_sweep`.
    """
    done: list[SweepResult] = []
    failed: dict[str, str] = {}
    for name in names:
        try:
            result = resume_sweep(
                name,
                results,
                expected=(expected or {}).get(name),
                show=None if show is None else partial(show, name),
                **options,
            )
        except SweepFailed as error:
            failed[name] = str(error)
        else:
            done.append(result)
    return GroupResult(tuple(done), failed)
