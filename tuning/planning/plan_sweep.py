"""Plan a sweep: check and complete what the user gives, before anything starts."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from contrasweep.data import check_available, dataset_spec
from contrasweep.data import data_root as folder_of_data
from contrasweep.search_spaces import Range, Space
from contrasweep.tuning.errors import InputError, told_to_user, unknown_name
from contrasweep.tuning.experiment import Experiment, Value
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.metrics import chosen_goals, full_name
from contrasweep.tuning.objectives.ranks import check_batch_size
from contrasweep.tuning.planning.plan import Limits, Scheduler, SweepPlan
from contrasweep.tuning.planning.resolve import check_names, preset_beside, resolve, space_of
from contrasweep.tuning.planning.resources import Machine, resources_for
from contrasweep.tuning.planning.warm_start import earlier_trials
from contrasweep.tuning.search import checked_storage, sampler_of
from contrasweep.tuning.store import ResultsStore, check_study_name

log = logging.getLogger(__name__)

DEFAULT_TRIALS = 24
SCHEDULERS: tuple[Scheduler, ...] = ("asha", "none")


def plan_sweep(
    method: str,
    dataset: str,
    *,
    trials: int | None = None,
    epochs: int | None = None,
    values: Mapping[str, Value] | None = None,
    space: Space | None = None,
    use_preset: bool = False,
    sampler: str = "tpe",
    grid_points: int | None = None,
    scheduler: str = "asha",
    metric: str | None = None,
    asha_metric: str | None = None,
    seed: int = 0,
    seeds: int | None = None,
    warm_start: Sequence[str] = (),
    storage: str | None = None,
    concurrency: int | None = None,
    cpus_per_trial: int = 1,
    workers: int = 1,
    gpus_per_worker: float = 0.0,
    machine: Machine | None = None,
    limits: Limits | None = None,
    data_root: Path | None = None,
    results: str | Path = "results",
    name: str | None = None,
    command: str = "",
) -> SweepPlan:
    """Return the checked plan of a sweep.

    Args:
        method: a registered method.
        dataset: a registered dataset, whose files must be there.
        trials: how many configurations to try, including the defaults; 24 by default. A grid tries all of its
            points: a smaller number is refused, a larger one is cut.
        epochs: the length of a trial that is not stopped early; the experiment's by default.
        values: settings that hold in every trial; a parameter named here is not searched.
        space: a search space that replaces the method's own.
        use_preset: start from the papers' settings for this method and dataset. A searched parameter takes
            the paper's value as its default; if its range excludes that value, the value is fixed.
        sampler: `tpe`, `gp`, `cmaes`, `random`, `grid`, or one of a plug-in.
        grid_points: the number of levels into which a grid cuts each range.
        scheduler: `asha` stops weak trials early, `none` does not.
        metric: the metric to maximise on the validation split; accuracy by default, averaged over the groups
            of (class, bias) on biased data. Several metrics, separated by commas, give a Pareto front.
        asha_metric: the metric by which `asha` compares trials; the first metric by default.
        seed: the seed of the proposals.
        seeds: the number of seeds of each trial; they advance together, and their mean counts. One by
            default; with `validation.split` folds as many as there are parts to hold out.
        warm_start: earlier studies in the same results folder whose trials the search learns from.
        storage: URL of a database (`sqlite:///FILE`) through which optuna-dashboard watches the search.
        concurrency: trials at once; by default as many as the machine has cores for.
        cpus_per_trial: cores and threads of a trial, or of each of its workers if there are several.
        workers: processes that train one trial together.
        gpus_per_worker: GPUs of each worker, 0 to 1; two trials of half a GPU share one.
        machine: where trials run; this machine by default (`ray.cluster.cluster_at` describes a cluster).
        limits: how often a trial's worker may die, and how long a trial may take.
        data_root: the folder of the datasets.
        results: the results folder or URI.
        name: the study's name; `METHOD-DATASET-TIME` by default.
        command: the command line to record.

    Raises:
        InputError, ValueError: an argument is wrong; nothing was started or written.
    """
    check_names(method, dataset)
    root = folder_of_data(data_root).absolute()
    for what, count in (("trials", trials), ("seeds", seeds), ("epochs", epochs)):
        if count is not None and count < 1:
            raise InputError(f"{what} must be at least 1, given {count}")
    if scheduler not in SCHEDULERS:
        raise unknown_name("scheduler", scheduler, SCHEDULERS)
    given = {**(values or {}), **({} if epochs is None else {"epochs": epochs})}
    start: Mapping[str, Value] = {}
    if use_preset:
        start, held = split_preset(method, dataset, space, given)
        given = {**held, **given}
    remaining = cut_into_levels(space_of(method, dataset, space, given, start), sampler, grid_points)
    experiment = _check_extremes(method, dataset, remaining, given, root)
    scored = METHODS[method], dataset_spec(dataset, root), experiment.probes
    metrics = chosen_goals(metric, *scored)
    sampler_of(sampler).check(remaining, len(metrics))
    planned = _trials(trials, sampler, remaining)
    resources = resources_for(
        concurrency, cpus_per_trial, workers, gpus_per_worker, most=planned, machine=machine
    )
    check_batches(experiment, remaining, workers)
    if experiment.validation.fraction == 0:
        raise InputError("validation.fraction is 0: a search needs a validation split to score its trials")
    check_available(dataset, root)
    created = datetime.now(UTC)
    study_name = check_study_name(name or default_name(method, dataset, created))
    plan = SweepPlan(
        name=study_name,
        method=method,
        dataset=dataset,
        space=remaining,
        given=given,
        experiment=experiment,
        trials=planned,
        sampler=sampler,
        scheduler="asha" if scheduler == "asha" else "none",
        metrics=metrics,
        asha_metric=metrics[0] if asha_metric is None else full_name(asha_metric, *scored),
        seed=seed,
        resources=resources,
        results=str(results),
        data_root=root,
        seeds=experiment.validation.rounds if seeds is None else seeds,
        grid_points=grid_points,
        limits=limits or Limits(),
        storage=None if storage is None else checked_storage(storage, study_name),
        command=command,
        created=created,
    )
    return replace(plan, warm=earlier_trials(plan, warm_start, ResultsStore(results))) if warm_start else plan


def split_preset(
    method: str, dataset: str, space: Space | None, values: Mapping[str, Value]
) -> tuple[dict[str, Value], dict[str, Value]]:
    """Return the settings of a preset that the search starts from, and those that hold in every trial.

    Neither contains a setting that `values` names.

    Raises:
        InputError: there is no such preset.
    """
    found = preset_beside(method, dataset, values)
    free = {parameter.name for parameter in (space or METHODS[method].search_space()).searched}
    # What the preset fixes decides which parameters there are, and the range of the learning rate.
    fixed = {name: value for name, value in {**found, **values}.items() if name not in free}
    searched = {parameter.name: parameter for parameter in space_of(method, dataset, space, fixed).searched}
    start: dict[str, Value] = {}
    held: dict[str, Value] = {}
    for name, value in found.items():
        parameter = searched.get(name)
        if parameter is not None and parameter.contains(value):
            start[name] = value
            continue
        held[name] = value
        if parameter is not None:
            log.warning(
                "%s is not searched: the preset has %s, the space %s", name, value, parameter.describe()
            )
    return start, held


def default_name(method: str, dataset: str, created: datetime) -> str:
    """Return `METHOD-DATASET-TIME`, with a dash for every character that a file name should not have."""
    return f"{method}-{re.sub(r'[^A-Za-z0-9.-]+', '-', dataset)}-{created:%Y%m%d-%H%M%S}"


def check_batches(experiment: Experiment, space: Space, workers: int) -> None:
    """Refuse batch sizes that do not divide among the workers: the experiment's and those the space searches.

    Raises:
        InputError: a size does not divide, or the space searches a range of sizes.
    """
    check_batch_size(experiment.batch_size, workers)
    for parameter in space.searched:
        if parameter.name == "batch_size" and workers > 1:
            if isinstance(parameter, Range):
                raise InputError(
                    f"{space.origin} searches batch_size over a range, of which not all divide among "
                    f"{workers} workers: give a choice"
                )
            for size in parameter.choices:
                check_batch_size(int(size), workers)


def cut_into_levels(space: Space, sampler: str, grid_points: int | None) -> Space:
    """Return the space with its ranges cut into `grid_points` levels, if a grid is asked for."""
    if grid_points is None:
        return space
    if not sampler_of(sampler).exhaustive:
        raise InputError(f"grid points go with the sampler grid, given {grid_points} with {sampler}")
    return space.with_levels(grid_points)


def _trials(given: int | None, sampler: str, space: Space) -> int:
    """Return how many trials to run; a grid runs all of its points."""
    points = space.size()
    if not sampler_of(sampler).exhaustive or points is None:
        return DEFAULT_TRIALS if given is None else given
    if given is not None and given < points:
        raise InputError(
            f"the grid has {points} points, and {given} trials would leave {points - given} of them out; "
            f"give --trials {points}, a smaller space, or another sampler (random draws some of the points)"
        )
    return points


def _check_extremes(
    method: str, dataset: str, space: Space, given: Mapping[str, Value], root: Path
) -> Experiment:
    """Return the experiment of the defaults; check that the ends of ranges and all choices give one too."""
    outside = {path: value for path, value in given.items() if path not in space}
    experiment = resolve(method, dataset, {**outside, **space.defaults()}, space=space, data_root=root)
    for parameter in space.searched:
        extremes = (parameter.low, parameter.high) if isinstance(parameter, Range) else parameter.choices
        for value in extremes:
            values = {p.name: p.default for p in space.parameters} | {parameter.name: value}
            with told_to_user(f"{parameter.name} = {value}, which {space.origin} allows: "):
                resolve(method, dataset, {**outside, **space.complete(values)}, space=space, data_root=root)
    return experiment
