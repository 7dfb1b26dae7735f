"""Final runs: selected experiments on fresh seeds, each trained on all training images and tested once."""

import logging
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from contrasweep.names import counted
from contrasweep.tuning.errors import SweepFailed, SweepStopped
from contrasweep.tuning.planning.final_plan import FinalPlan, plan_final_runs, trial_and_seed
from contrasweep.tuning.planning.resources import AskedResources, Machine, Resources
from contrasweep.tuning.planning.selected import Selected
from contrasweep.tuning.progress.display import OnProgress, following
from contrasweep.tuning.progress.tracker import RunsTracker
from contrasweep.tuning.ray.final_driver import run_all
from contrasweep.tuning.ray.signals import told_in_notebooks
from contrasweep.tuning.results.commands import FINAL_SEEDS, show_command
from contrasweep.tuning.results.encoders import stored_encoders
from contrasweep.tuning.results.failures import common_error
from contrasweep.tuning.results.final_runs import FinalRuns, completed_rows, side_by_side
from contrasweep.tuning.results.merging import merge_rows
from contrasweep.tuning.store import Heartbeat, ResultsStore
from contrasweep.tuning.training.devices import AUTO
from contrasweep.tuning.trials.trial import TrialRequest

log = logging.getLogger(__name__)


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
        SweepFailed: no run completed. If some studies have completed runs, a warning names the others.
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
    done = run_plans(plans, resources, progress)
    for failure in none_completed(plans, done):
        log.warning("%s", failure)
    return side_by_side(done)


def run_plans(
    plans: Sequence[FinalPlan], resources: Resources, progress: OnProgress = None
) -> list[FinalRuns]:
    """Run what the store lacks of the final runs of several studies, together; return those of each study.

    The arguments and the errors are those of `final_runs`. Nothing is trained if one of the plans is refused.
    A study without a completed run has no rows.
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
        for _ in run_all(requests, at_once, tracker, lambda stage=None: show(tracker.progress(stage))):
            show(tracker.progress())
            for plan, heartbeat in zip(plans, beating, strict=True):
                _check_in_charge(plan, heartbeat)
        for plan in plans:
            merge_rows(plan.location, plan.record.name)
    done = [_ended(plan, len(own)) for plan, own in zip(plans, missing, strict=True)]
    if not any(one.rows for one in done):
        raise SweepFailed("; ".join(none_completed(plans, done)))
    return done


def none_completed(plans: Sequence[FinalPlan], done: Sequence[FinalRuns]) -> list[str]:
    """Return what went wrong in each study that has no completed run."""
    return [_why_none(plan) for plan, one in zip(plans, done, strict=True) if not one.rows]


def _why_none(plan: FinalPlan) -> str:
    study, store = plan.record.name, ResultsStore(plan.location)
    error = common_error(store.trials(study)["error"].to_pylist())
    told = "" if error is None else f": {error}"
    errors = show_command(study, plan.location.uri)
    return f"no final run of {study} completed{told}; `{errors}` shows the errors"


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
    completed = completed_rows(ResultsStore(plan.location), plan.record.name)
    keys = map(trial_and_seed, plan.requests)
    rows = [completed[key] for key in keys if key in completed]
    of = len(plan.requests)
    return FinalRuns(plan.record.name, rows, failed=of - len(rows), held=of - trained)


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
