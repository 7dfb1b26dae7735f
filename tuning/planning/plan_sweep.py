"""Plan a sweep: check and complete what the user gives, before anything starts."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from contrasweep.data import DatasetFacts, check_available, dataset_spec, normal_name
from contrasweep.data import data_root as folder_of_data
from contrasweep.names import in_utf8
from contrasweep.search_spaces import Range, Space
from contrasweep.tuning.errors import InputError, told_to_user
from contrasweep.tuning.experiment import Experiment, Value
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.metrics import cheap_form, chosen_goals, full_name, search_metrics
from contrasweep.tuning.objectives.prepared import spec_for
from contrasweep.tuning.objectives.ranks import check_batch_size
from contrasweep.tuning.planning.early_end import check_stop_when
from contrasweep.tuning.planning.options import checks_arguments
from contrasweep.tuning.planning.own_space import own_space_of
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.request import (
    Request,
    check_request,
    conditions,
    default_name,
    outside,
    usual_scheduler,
)
from contrasweep.tuning.planning.resolve import check_experiment, check_size_of_data, resolve
from contrasweep.tuning.planning.resources import AskedResources, Machine, Resources, shortfalls
from contrasweep.tuning.planning.rules import RunningRules, SearchRules
from contrasweep.tuning.planning.setup import scored_images
from contrasweep.tuning.planning.warm_start import warm_started
from contrasweep.tuning.results.commands import results_folder
from contrasweep.tuning.results.encoders import KEPT
from contrasweep.tuning.search import checked_storage, sampler_of
from contrasweep.tuning.store import ResultsStore, SearchRecord, check_new_name
from contrasweep.tuning.training.devices import AUTO

log = logging.getLogger(__name__)


@checks_arguments
def plan_sweep(
    method: str,
    dataset: str,
    *,
    trials: int | None = None,
    epochs: int | None = None,
    values: Mapping[str, Value] | None = None,
    space: Space | Mapping[str, Any] | str | Path | None = None,
    use_preset: bool = False,
    sampler: str | None = None,
    grid_points: int | None = None,
    scheduler: str | None = None,
    metric: str | None = None,
    asha_metric: str | None = None,
    eta: int | None = None,
    grace: int | None = None,
    seed: int = 0,
    seeds: int | None = None,
    keep: Sequence[str] = (),
    warm_start: Sequence[str] = (),
    enqueue: Sequence[Mapping[str, Any]] = (),
    storage: str | None = None,
    concurrency: int | None = None,
    cpus_per_trial: int = 1,
    workers: int = 1,
    gpus_per_worker: float | None = None,
    device: str = AUTO,
    machine: Machine | None = None,
    max_failures: int = 1,
    trial_timeout: float | None = None,
    budget: float | None = None,
    stop_when: str | None = None,
    keep_weights: int = KEPT,
    data_root: str | Path | None = None,
    results: str | Path | None = None,
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
        space: what is searched in place of the method's own space: a mapping of parameter to form, such as
            `{"temperature": {"log": [0.05, 1.0]}}`, the path of a YAML file with one, or a `Space`.
        use_preset: start from the papers' settings for this method and dataset. A searched parameter takes
            the paper's value as its default; if its range excludes that value, the value is fixed.
        sampler: `curves`, `tpe`, `gp`, `cmaes`, `random`, `grid`, or one of a plug-in; by default `curves`,
            with several metrics `tpe`.
        grid_points: the number of levels into which a grid cuts each range.
        scheduler: `asha` and `curves` stop weak trials early, with `asha+curves` either does; `none` stops no
            trial. By default `asha`; with more than four trials at once and the sampler `curves`,
            `asha+curves`.
        metric: the metric to maximise on the validation split; accuracy by default, averaged over the groups
            of (class, bias) on biased data. Several metrics, separated by commas, give a Pareto front.
        asha_metric: the metric by which `asha` compares trials; the first metric by default.
        eta: `asha` lets one in so many of the trials at a rung go on, and each rung is so many times as late
            as the previous one; 3 by default.
        grace: the epochs that `asha` gives every trial, which is the first rung; by default the warmup of the
            learning rate and a tenth of all epochs.
        seed: the seed of the proposals.
        seeds: the number of seeds of each trial; they advance together, and their mean counts. One by
            default; with `validation.split` folds as many as there are parts to hold out.
        keep: conditions such as `colour_mse>=200`: the search looks for the best trial among those that keep
            them all.
        warm_start: earlier studies in the same results folder. The search learns from the trials of those on
            its dataset; the best configurations of those on other datasets run first.
        enqueue: configurations that run first, after the defaults: values by parameter; what one leaves out
            takes its default.
        storage: URL of a database (`sqlite:///FILE`) through which optuna-dashboard watches the search.
        concurrency: trials at once; by default as many as the machine has cores for.
        cpus_per_trial: cores and threads of a trial, or of each of its workers if there are several.
        workers: processes that train one trial together.
        gpus_per_worker: GPUs of each worker, 0 to 1; two trials of half a GPU share one. By default one, or
            none where the device is the CPU.
        device: `auto`, which is a GPU where there is one, `cpu` or `cuda`.
        machine: where trials run; this machine by default (`ray.cluster.cluster_at` describes a cluster).
        max_failures: how often the worker of a trial may die; it goes on in another one from its checkpoint.
        trial_timeout: how many seconds a trial may run in one worker before it fails; by default any time.
        budget: once trials have run for so many seconds by the clock, over all drivers of the study, no
            further trial begins; those that run go on to their ends. By default any time.
        stop_when: the condition on which no further trial begins, as the search no longer gains, such as
            `gain<noise for 20`; by default none.
        keep_weights: of how many of the best completed trials the store keeps the encoders.
        data_root: the folder of the datasets.
        results: the results folder or URI; None: CONTRASWEEP_RESULTS, else `results`.
        name: the study's name; `METHOD-DATASET-TIME` by default.
        command: the command line to record.

    Raises:
        InputError, ValueError: an argument is wrong; nothing was started or written.
        TypeError: there is no such argument; the message has the nearest.
    """
    asked = AskedResources(concurrency, cpus_per_trial, workers, gpus_per_worker, device, machine)
    if space is not None and not isinstance(space, Space):
        space = own_space_of(space, [method], dataset, values or {})
    rules = SearchRules(
        trials=trials,
        epochs=epochs,
        values=values or {},
        space=space,
        sampler=sampler,
        grid_points=grid_points,
        scheduler=scheduler,
        metric=metric,
        asha_metric=asha_metric,
        eta=eta,
        grace=grace,
        seed=seed,
        seeds=seeds,
        keep=keep,
    )
    running = RunningRules(
        max_failures=max_failures,
        trial_timeout=trial_timeout,
        budget=budget,
        stop_when=stop_when,
        keep_weights=keep_weights,
        storage=storage,
    )
    results = results_folder(results)
    request = check_request(method, dataset, rules, use_preset=use_preset, enqueue=enqueue)
    # Splits are drawn for a dataset's name: its spelling must not decide about them.
    dataset = normal_name(dataset)
    if name is not None:
        check_new_name(name)
    root = _recorded_root(folder_of_data(data_root))
    experiment = experiment_of_defaults(method, dataset, request, root)
    goals = _goals(rules, METHODS[method], dataset_spec(dataset, root), experiment.probes)
    resources = asked.resources(request.trials)
    for remark in (*request.remarks, *shortfalls(asked, resources, request.trials)):
        log.warning("%s", remark)
    _check_trials(request, experiment, goals, resources.workers, root)
    check_available(dataset, root)
    created = datetime.now(UTC)
    study_name = check_new_name(default_name(method, dataset, created)) if name is None else name
    running = watched_from(running, study_name)
    plan = SweepPlan(
        name=study_name,
        method=method,
        dataset=dataset,
        space=request.space,
        experiment=experiment,
        search=_search_record(rules, running, request, experiment, goals, resources, root),
        resources=resources,
        results=str(results),
        data_root=root,
        command=command,
        created=created,
    )
    for number, configuration in enumerate(plan.search.enqueued, 1):
        with told_to_user(f"configuration {number} of --enqueue: "):
            plan.experiment_of(plan.space.complete(configuration))
    return warm_started(plan, warm_start, ResultsStore(results)) if warm_start else plan


@dataclass(frozen=True)
class _Goals:
    """What a search maximises, what its scheduler compares trials by, and all that its trials report."""

    metrics: tuple[str, ...]
    asha_metric: str
    reported: Sequence[str]


def _goals(rules: SearchRules, *scored: Any) -> _Goals:
    metrics = chosen_goals(rules.metric, *scored)
    asha_metric = metrics[0] if rules.asha_metric is None else full_name(rules.asha_metric, *scored)
    return _Goals(metrics, asha_metric, search_metrics(*scored))


def _check_trials(request: Request, experiment: Experiment, goals: _Goals, workers: int, root: Path) -> None:
    """Refuse a search with trials that could not run, before any of them is proposed.

    Raises:
        InputError: the sampler cannot search the space, an end of a range gives no experiment, a batch does
            not divide among the workers or is larger than the dataset, or no image is held out.
    """
    sampler_of(request.sampler).check(request.space, len(goals.metrics))
    _check_extremes(experiment, request.space, root)
    check_batches(experiment, request.space, workers)
    _refuse_more_than_there_is(experiment, request.space, spec_for(experiment, root))
    if experiment.validation.fraction == 0:
        raise InputError("validation.fraction is 0: a search needs a validation split to score its trials")


def _search_record(
    rules: SearchRules,
    running: RunningRules,
    request: Request,
    experiment: Experiment,
    goals: _Goals,
    resources: Resources,
    root: Path,
) -> SearchRecord:
    """Return how the study is searched, with all that users may leave out filled in."""
    seeds = experiment.validation.rounds if rules.seeds is None else rules.seeds
    scheduler = rules.scheduler or usual_scheduler(request.sampler, goals.metrics, resources.concurrency)
    as_given = {name: value for name, value in rules.given().items() if name in SearchRecord.model_fields}
    resolved = {
        "trials": request.trials,
        "sampler": request.sampler,
        "scheduler": scheduler,
        "metric": ",".join(goals.metrics),
        "asha_metric": goals.asha_metric,
        "rung_metric": cheap_form(goals.asha_metric, goals.reported),
        "seeds": seeds,
        "keep": conditions(rules.keep or (), goals.reported),
        "given": request.given,
        "enqueued": request.enqueued,
        "concurrency": resources.allowed or resources.concurrency,
        "cpus": resources.cpus,
        "workers": resources.workers,
        "gpus": resources.gpus,
        "data_root": str(root),
        "validation_images": scored_images(experiment, seeds, root) or None,
    }
    search = SearchRecord(**as_given | resolved | running.given())
    check_stop_when(search)
    return search


def _recorded_root(root: Path) -> Path:
    """Return the absolute path of the folder of the datasets, which the record of the study holds as text.

    Raises:
        InputError: it is not UTF-8.
    """
    absolute = root.absolute()
    name = in_utf8(str(absolute))
    if name != str(absolute):
        raise InputError(f"the folder of the datasets {name} cannot be recorded: its path is not UTF-8")
    return absolute


def watched_from(running: RunningRules, study: str, own: str | None = None) -> RunningRules:
    """Return the rules with the URL of a database that has been opened, if they have any.

    Raises:
        InputError: it cannot be opened, or holds a study of this name other than the copy at `own`.
    """
    url = running.storage
    return running if url is None else replace(running, storage=checked_storage(url, study, own))


def experiment_of_defaults(method: str, dataset: str, request: Request, root: Path) -> Experiment:
    """Return the experiment of the first trial of a search, whose values the others change.

    Raises:
        InputError: the settings do not fit together, or to the dataset's size.
    """
    space = request.space
    fixed = outside(space, request.given)
    experiment = resolve(method, dataset, {**fixed, **space.defaults()}, space=space, data_root=root)
    check_size_of_data(experiment, root)
    return experiment


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


def _refuse_more_than_there_is(experiment: Experiment, space: Space, facts: DatasetFacts) -> None:
    """Raise InputError if a batch is to have more images than a trial trains on."""
    share = experiment.validation.fraction
    images, sizes = facts.trained_size(share), [experiment.batch_size]
    for parameter in space.searched:
        if parameter.name == "batch_size":
            sizes += [int(parameter.high)] if isinstance(parameter, Range) else map(int, parameter.choices)
    if images is not None and max(sizes) > images:
        held_out = f" ({facts.validation_size(share):,} more are held out for validation)" if share else ""
        searched = "" if experiment.batch_size > images else f", which {space.origin} allows,"
        smaller = f", or smaller values in {space.origin}" if searched else ""
        raise InputError(
            f"batch_size {max(sizes):,}{searched} is above the {images:,} images of {facts.name} that a "
            f"trial trains on{held_out}: give --set batch_size=N with N of at most {images:,}{smaller}"
        )


def _check_extremes(experiment: Experiment, space: Space, root: Path) -> None:
    """Check that the ends of ranges and all choices give an experiment, beside the defaults of the others.

    Of a range of fractions, one inside is checked too: a setting that takes whole numbers accepts 32.0.

    Raises:
        InputError: one does not; the message names it.
    """
    for parameter in space.searched:
        extremes = _extremes_of(parameter) if isinstance(parameter, Range) else parameter.choices
        for value in extremes:
            values = {p.name: p.default for p in space.parameters} | {parameter.name: value}
            with told_to_user(f"{parameter.name} = {value}, which {space.origin} allows: "):
                check_experiment(experiment.with_searched(space.names, space.complete(values)), root)


def _extremes_of(parameter: Range) -> tuple[Value, ...]:
    """Return both ends of a range and, unless it has whole numbers alone, a fraction between them."""
    ends = (parameter.low, parameter.high)
    if parameter.is_integer:
        return ends
    middle = sum(ends) / 2
    return (*ends, middle + min(0.5, (parameter.high - middle) / 2) if middle.is_integer() else middle)
