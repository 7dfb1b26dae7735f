"""Sweeps on Ray Tune, one study or several in turn: plan in, results in the store."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ParamSpec, Unpack

from ray.tune import Callback

from contrasweep.data import check_available
from contrasweep.tuning.errors import InputError, SweepStopped
from contrasweep.tuning.limits import check_count
from contrasweep.tuning.planning.early_end import EarlyEnd, check_stop_when
from contrasweep.tuning.planning.options import SweepOptions, checks_arguments
from contrasweep.tuning.planning.plan import SweepPlan, plan_of
from contrasweep.tuning.planning.plan_sweep import check_batches, plan_sweep, watched_from
from contrasweep.tuning.planning.plugin_changes import refuse_absent_plugins, warn_of_other_code
from contrasweep.tuning.planning.resources import AskedResources, Machine
from contrasweep.tuning.planning.resume_check import Expected, refuse_difference, trials_wanted_again
from contrasweep.tuning.planning.rules import RunningRules
from contrasweep.tuning.progress.display import OnProgress, following
from contrasweep.tuning.progress.tracker import STARTING_RAY
from contrasweep.tuning.ray.cluster import ray_session, refuse_full_disk
from contrasweep.tuning.ray.earlier_drivers import earlier_trials
from contrasweep.tuning.ray.result import SweepResult
from contrasweep.tuning.ray.searcher import StoreSearcher
from contrasweep.tuning.ray.signals import told_in_notebooks
from contrasweep.tuning.ray.sweep_end import as_begun, result_of
from contrasweep.tuning.ray.tuner import Show, ShowProgress, tuner_of
from contrasweep.tuning.ray.watch import ForgetEnded, TellWarnings, TrialWatch
from contrasweep.tuning.results.commands import (
    RESUMABLE,
    results_folder,
    resume_call,
    resume_command,
)
from contrasweep.tuning.results.merging import merge_rows
from contrasweep.tuning.results.selection import rule_of
from contrasweep.tuning.search import PastTrial, sampler_of
from contrasweep.tuning.store import Heartbeat, Location, ResultsStore, StoreUnavailable, layout
from contrasweep.tuning.store.filesystem import open_location
from contrasweep.tuning.store.record import StudyRecord
from contrasweep.tuning.store.reopen import reopen_failed
from contrasweep.tuning.store.study import OTHER_NAME, refuse_taken, save_study
from contrasweep.tuning.store.tensorboard import write_experiment
from contrasweep.tuning.store.unstarted import removed_if_refused

log = logging.getLogger(__name__)

P = ParamSpec("P")


def _with_options_of(
    plan: Callable[..., Any],
) -> Callable[[Callable[P, SweepResult]], Callable[P, SweepResult]]:
    """Show the options of `plan` in the signature of a function that passes them on."""

    def decorate(run: Callable[P, SweepResult]) -> Callable[P, SweepResult]:
        own, planned = signature(run).parameters, signature(plan).parameters
        shown = [*planned.values(), *(one for name, one in own.items() if name not in (*planned, "options"))]
        run.__dict__["__signature__"] = signature(run).replace(parameters=shown)
        return run

    return decorate


@checks_arguments
@_with_options_of(plan_sweep)
def sweep(
    method: str, dataset: str, *, progress: OnProgress = None, **options: Unpack[SweepOptions]
) -> SweepResult:
    """Search the hyperparameters of a method on a dataset, and return what came of it.

    For example::

        study = contrasweep.sweep("infonce", "digits", trials=24, epochs=10, name="first")
        study.best()

    These are the arguments that most searches need; `help(contrasweep.plan_sweep)` describes all. Every
    argument after the dataset is given by its name.

    Args:
        method: the name of a method, such as "infonce" (`contrasweep methods` lists them).
        dataset: the name of a dataset, such as "digits" (`contrasweep datasets` lists them).
        progress: whether to show the progress; by default on terminals and in notebooks.
        options: all others, among them

            - trials (int, default 24): how many configurations to try; the first has the defaults.
            - epochs (int): how long a trial trains that is not stopped; by default as many as the method's or
              the dataset's settings say.
            - values (dict): settings that hold in every trial and are not searched, such as
              `{"batch_size": 64, "optimizer.name": "adam"}`.
            - space (dict, or the path of a YAML file): what to search in place of the method's own space,
              such as `{"temperature": {"log": [0.05, 1.0]}, "optimizer.lr": 0.1}`.
            - metric (str): what to maximise on the validation split; by default the accuracy.
            - sampler (str): what proposes configurations: "curves" (default), "tpe" (default with several
              metrics), "gp", "cmaes", "random" or "grid".
            - scheduler (str): what stops weak trials early: "asha" (default), "curves", or "asha+curves"
              (default with the sampler "curves" and more than four trials at once); "none" does not.
            - seeds (int, default 1): how many seeds each trial trains; the mean counts.
            - concurrency (int): how many trials run at once; by default as many as there are cores.
            - device (str, default "auto"): "cpu", "cuda", or "auto" for a GPU where there is one.
            - budget (float): for how many seconds trials may begin; by default any time.
            - data_root (str or Path): the folder of the datasets.
            - results (str or Path, default: CONTRASWEEP_RESULTS, else "results"): the folder or URI
              that keeps the study.
            - name (str): the name of the study; by default made of method, dataset and time.

    Raises:
        TypeError: there is no such argument; the message has the nearest.
        InputError, ValueError: an argument is wrong; nothing was started.
        StoreError: the results folder cannot be used, or it has a study of that name.
        SweepFailed: no trial finished.
    """
    plan = plan_sweep(method, dataset, **options)
    for line in (*(f"warm start: {one}" for one in plan.remarks), *plan.warnings):
        log.warning("%s", line)
    return run_sweep(plan, progress)


def run_sweep(plan: SweepPlan, progress: OnProgress = None) -> SweepResult:
    """Run a new study.

    Args:
        plan: the plan of the study.
        progress: whether to show the progress: None shows it on terminals and in notebooks, True everywhere,
            False nowhere. A function is called with a `SweepProgress` after every epoch of any trial.

    Raises:
        InputError: a node of the cluster lacks what trials need. No study is left behind.
        StoreError: the results folder cannot be used, or it has a study of that name.
        SweepFailed: no trial finished.
    """
    location, record = create_study(plan)
    with removed_if_refused(location, [plan.name]), following(progress) as show:
        return _run(plan, record, location, show)


def create_study(plan: SweepPlan) -> tuple[Location, StudyRecord]:
    """Write the record of a new study, which can then be run or resumed.

    Raises:
        StoreError: the results folder cannot be used, or it has a study of that name.
        SweepFailed: there is no room for temporary files.
    """
    refuse_full_disk()
    location = open_location(plan.results, writable=True)
    record = plan.record()
    in_python = f"in Python, `{resume_call(plan.name, plan.results)}` does"
    refuse_taken(location, [record.name], f"{OTHER_NAME} {RESUMABLE}; {in_python}.")
    save_study(location, record)
    if location.filesystem.type_name == "local":
        folder = location.path(layout.events_folder(record.name))
        write_experiment(folder, record.columns, record.metric, rule_of(record.require_search()))
    return location, record


@checks_arguments
def resume_sweep(
    name: str,
    results: str | Path | None = None,
    *,
    data_root: Path | None = None,
    concurrency: int | None = None,
    workers: int | None = None,
    gpus_per_worker: float | None = None,
    device: str | None = None,
    machine: Machine | None = None,
    max_failures: int | None = None,
    trial_timeout: float | None = None,
    budget: float | None = None,
    stop_when: str | None = None,
    keep_weights: int | None = None,
    storage: str | None = None,
    expected: Expected | None = None,
    extend: int = 0,
    retry_failed: bool = False,
    progress: OnProgress = None,
) -> SweepResult:
    """Go on with an interrupted study: finished trials stay, unfinished ones continue from their checkpoints.

    Args:
        name: the study.
        results: as in `plan_sweep`.
        data_root, concurrency, workers, gpus_per_worker: as in `plan_sweep`; each replaces what the study has
            recorded.
        device: as in `plan_sweep`; by default the study goes on with the GPUs that it has recorded.
        max_failures, trial_timeout, budget, stop_when: as in `plan_sweep`; each replaces what the study has
            recorded, also for later drivers.
        keep_weights, storage: as in `plan_sweep`; the same.
        machine: where trials run; by default this machine.
        expected: the options that the caller gave; a difference from the study is refused.
        extend: how many trials to add to those planned. For `stop_when` they count anew: at least as many of
            them begin as it names.
        retry_failed: whether trials that failed run again, as further attempts.
        progress: as in `run_sweep`.

    Raises:
        InputError: the study differs from what was expected or is of another version (the message names the
            difference), a batch does not divide among the workers, or a storage that is new to the study
            holds a study of its name.
        DatasetMissing: the dataset's files are not in place. Trials would fail and would not be tried again.
        StoreError: there is no such study, or its driver is alive.
        SweepFailed: no trial finished.
    """
    asked = AskedResources(concurrency, None, workers, gpus_per_worker, device, machine)
    refuse_full_disk()
    results = results_folder(results)
    location = open_location(results, writable=True)
    record = ResultsStore(location).study(name)
    refuse_absent_plugins(record, searches_on=True)
    expected = expected or Expected()
    check_count("extend", extend, least=0)
    running = RunningRules(
        max_failures=max_failures,
        trial_timeout=trial_timeout,
        budget=budget,
        stop_when=stop_when,
        keep_weights=keep_weights,
        storage=storage,
    )
    wanted = trials_wanted_again(record, expected, limited=budget is not None or bool(stop_when))
    plan = plan_of(record, str(results), asked, data_root=data_root, extend=extend or wanted)
    _check_again(plan, record, expected, extend)
    plan = _with_rules(plan, running, extend)
    warn_of_other_code(record, record.require_search().sampler)
    with following(progress) as show:
        return _run(plan, record, location, show, retry_failed)


def _check_again(plan: SweepPlan, record: StudyRecord, expected: Expected, extend: int) -> None:
    """Refuse to go on with a study that is not the expected one, or whose trials could not run here.

    Raises:
        InputError, DatasetMissing: see `resume_sweep`.
    """
    refuse_difference(plan, record, expected)
    check_count(f"trials of study {plan.name}", plan.search.trials)
    _check_points(plan, extend)
    check_batches(plan.experiment, plan.space, plan.resources.workers)
    check_available(plan.dataset, plan.data_root)


def _with_rules(plan: SweepPlan, running: RunningRules, extend: int) -> SweepPlan:
    """Return the plan of a resumed study with the rules that it is given anew.

    Raises:
        InputError: a storage holds another study of its name, or the condition to end early means nothing.
    """
    running = watched_from(running, plan.name, own=plan.search.storage)
    counted = {"stop_from": plan.search.trials - extend} if extend else {}
    plan = plan.with_search(**running.given(), **counted)
    if running.stop_when is not None:
        # A stored condition was checked by the version that took it.
        check_stop_when(plan.search)
    return plan


def _run(
    plan: SweepPlan,
    record: StudyRecord,
    location: Location,
    show: Show | None,
    retry_failed: bool = False,
) -> SweepResult:
    with ExitStack() as stack:
        machine = plan.resources.machine
        stack.enter_context(telling_how_to_go_on([plan.method], plan.name, plan.results, machine))
        stack.enter_context(told_in_notebooks(resume_call(plan.name, plan.results)))
        heartbeat = stack.enter_context(Heartbeat(location, plan.name))
        record = _with_changes(plan, record, location)
        if retry_failed:
            reopen_failed(location, record)
        crashes = Path(stack.enter_context(TemporaryDirectory(prefix="contrasweep-crashes-")))
        watch = TrialWatch(plan.search.trial_timeout, crashes)
        searcher, past = _searcher_of(plan, record, location, watch, crashes, heartbeat.in_charge)
        if searcher.has_more:
            if show is not None:
                show(searcher.progress(STARTING_RAY))
            callbacks: list[Callback] = [watch, TellWarnings(), ForgetEnded(), ShowProgress(searcher, show)]
            _tune(plan, searcher, past, callbacks)
        elif show is not None:
            show(searcher.progress("nothing was left to train"))
        plan = as_begun(plan, searcher, record, location)
        merge_rows(location, plan.name)
    return result_of(plan, searcher, record, location)


def _searcher_of(
    plan: SweepPlan,
    record: StudyRecord,
    location: Location,
    watch: TrialWatch,
    crashes: Path,
    in_charge: Callable[[], bool],
) -> tuple[StoreSearcher, Sequence[PastTrial]]:
    """Return the searcher of a study and the trials of its earlier drivers, whose traces are tidied up.

    To be called once this driver is in charge: no other one can then be at work on the study.
    """
    earlier = earlier_trials(plan, record, location)
    searcher = StoreSearcher(
        plan,
        record,
        location,
        earlier.past,
        in_charge=in_charge,
        cause=watch.cause,
        failures=watch.failures,
        crashes=crashes,
        early=EarlyEnd(plan.search, earlier.outcomes, spent=earlier.seconds),
    )
    searcher.tidy()
    return searcher, earlier.past


def _with_changes(plan: SweepPlan, record: StudyRecord, location: Location) -> StudyRecord:
    """Write what a resumed study was given anew to its record: the next driver goes on with it."""
    changed = record.model_copy(update={"search": plan.search})
    if changed.search != record.search:
        save_study(location, changed, replace=True)
    return changed


def _check_points(plan: SweepPlan, extend: int) -> None:
    """Refuse to add more trials to a grid than it has points."""
    if not extend or not sampler_of(plan.search.sampler).exhaustive:
        return
    planned = plan.search.trials - extend
    left = (plan.space.size() or 0) - planned
    if left <= 0:
        raise InputError(f"a grid has no further points: all {planned} of study {plan.name} are planned")
    check_count("extend", extend, most=left)


def _tune(
    plan: SweepPlan, searcher: StoreSearcher, past: Sequence[PastTrial], callbacks: list[Callback]
) -> None:
    """Run the trials that have not ended."""
    with ray_session(plan.resources, searcher.needs) as scratch:
        tuner_of(plan, searcher, past, scratch, callbacks).fit()
    if searcher.stopped_by is not None:
        raise SweepStopped(f"the sweep {plan.name} stopped: {searcher.stopped_by}")


@contextmanager
def telling_how_to_go_on(
    methods: Sequence[str], name: str, results: str | Path, machine: Machine | None
) -> Iterator[None]:
    """Add the command that goes on to what ends the block early, as a note."""
    place = () if machine is None else (machine.address, machine.autoscales, machine.one_node)
    try:
        yield
    except (KeyboardInterrupt, SweepStopped, StoreUnavailable) as stop:
        go_on = resume_command(methods, name, results, *place)
        stop.add_note(f"What was finished is kept; `{go_on}` goes on.")
        raise
