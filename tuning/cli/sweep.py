"""`contrasweep sweep`: search a method's hyperparameters on a dataset."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from contrasweep.names import counted, names_in
from contrasweep.tuning.cli.command_line import command_line
from contrasweep.tuning.cli.options import (
    Address,
    AsJson,
    Autoscale,
    Concurrency,
    Cpus,
    DataRoot,
    Device,
    GpusPerWorker,
    OneNode,
    Preset,
    Results,
    Set,
    Workers,
    check_cluster,
    machine_at,
    parse_settings,
)
from contrasweep.tuning.cli.rendering import progress_line, remark
from contrasweep.tuning.cli.sweep_options import (
    AshaMetric,
    Budget,
    Data,
    DryRun,
    Enqueue,
    Epochs,
    Eta,
    Extend,
    Grace,
    GridPoints,
    Keep,
    KeepWeights,
    MaxFailures,
    Methods,
    Metric,
    Name,
    Resume,
    RetryFailed,
    Sampler,
    Scheduler,
    Seed,
    Seeds,
    SpaceFile,
    StopWhen,
    Storage,
    Trials,
    TrialTimeout,
    WarmStart,
)
from contrasweep.tuning.cli.sweep_report import (
    failures_in_json,
    print_plans,
    report_methods,
    report_sweep,
    say_what_runs,
)
from contrasweep.tuning.cli.temporary import Tmp
from contrasweep.tuning.durations import seconds_in
from contrasweep.tuning.errors import InputError, refuse_repeats
from contrasweep.tuning.limits import check_count
from contrasweep.tuning.results.commands import RESULTS, studies_command

if TYPE_CHECKING:
    from contrasweep.tuning.planning.plan import SweepPlan
    from contrasweep.tuning.planning.resources import Machine
    from contrasweep.tuning.planning.rules import SearchRules
    from contrasweep.tuning.store import StudyRecord

DEFAULT_DATASET = "colour-digits"


def sweep(
    methods: Methods = None,
    data: Data = None,
    trials: Trials = None,
    epochs: Epochs = None,
    space: SpaceFile = None,
    set_: Set = None,
    preset: Preset = False,
    sampler: Sampler = None,
    grid_points: GridPoints = None,
    scheduler: Scheduler = None,
    metric: Metric = None,
    asha_metric: AshaMetric = None,
    keep: Keep = None,
    eta: Eta = None,
    grace: Grace = None,
    seed: Seed = None,
    seeds: Seeds = None,
    warm_start: WarmStart = None,
    enqueue: Enqueue = None,
    storage: Storage = None,
    concurrency: Concurrency = None,
    cpus_per_trial: Cpus = None,
    workers: Workers = None,
    gpus_per_worker: GpusPerWorker = None,
    device: Device = None,
    address: Address = None,
    autoscale: Autoscale = False,
    one_node: OneNode = False,
    max_failures: MaxFailures = None,
    trial_timeout: TrialTimeout = None,
    budget: Budget = None,
    stop_when: StopWhen = None,
    keep_weights: KeepWeights = None,
    data_root: DataRoot = None,
    results: Results = RESULTS,
    tmp: Tmp = None,
    name: Name = None,
    resume: Resume = False,
    extend: Extend = None,
    retry_failed: RetryFailed = False,
    dry_run: DryRun = False,
    json: AsJson = False,
) -> None:
    """Search a method's hyperparameters on a dataset.

    Example: contrasweep sweep fair-cclk --data colour-digits --trials 24 --epochs 10

    Example: contrasweep sweep fair-cclk infonce --data colour-digits --trials 24 --name compared
    """
    from contrasweep.tuning.planning.enqueued import read_configurations
    from contrasweep.tuning.planning.own_space import space_of_file
    from contrasweep.tuning.planning.resources import AskedResources
    from contrasweep.tuning.planning.rules import RunningRules, SearchRules

    methods = methods or []
    if setting := next((word for word in methods if "=" in word), None):
        raise InputError(
            f"{setting} is a setting, not a method: each has a --set of its own, --set {setting}"
        )
    if methods:
        refuse_repeats("method", methods)
    if preset:
        _refuse_value_of_preset(methods)
    rules = SearchRules(
        trials=trials,
        epochs=epochs,
        values=parse_settings(set_),
        sampler=sampler,
        grid_points=grid_points,
        scheduler=scheduler,
        metric=metric,
        asha_metric=asha_metric,
        eta=eta,
        grace=grace,
        seed=seed,
        seeds=seeds,
        keep=keep or None,
        warm_start=None if warm_start is None else names_in(warm_start) or [warm_start],
    )
    running = RunningRules(
        max_failures=max_failures,
        trial_timeout=trial_timeout,
        budget=None if budget is None else seconds_in(budget, "--budget"),
        stop_when=stop_when,
        keep_weights=keep_weights,
        storage=storage,
    )
    # All that is known to be wrong is refused here, before torch and Ray are imported.
    asked = AskedResources(concurrency, cpus_per_trial, workers, gpus_per_worker, device)
    check_cluster(address, autoscale, one_node)
    if resume or extend is not None:
        methods = methods or _methods_of(name, results)
        new = dry_run or preset or bool(enqueue)
        name = _check_resume(methods, name, results, resume, extend, trials, new)
        stored = _stored(methods, name, results)
        if space is not None:
            held = stored.require_search().given
            rules = replace(rules, space=space_of_file(space, methods, stored.dataset, held))
        asked = replace(asked, cpus=None, machine=_machine(address, autoscale, one_node))
        expected = {**vars(rules), "dataset": data, "cpus": cpus_per_trial}
        again = {"data_root": data_root, "extend": extend or 0, "retry_failed": retry_failed}
        _resume(methods, name, results, expected, json, **asked.given(), **running.given(), **again)
        return
    if retry_failed:
        raise InputError("--retry-failed goes with --resume or --extend: a new study has no failed trial")
    if not methods:
        raise InputError("METHOD... is missing: the methods to search; `contrasweep methods` lists them")
    dataset = data or DEFAULT_DATASET
    if data is None:
        remark(f"No --data was given: the sweep uses {DEFAULT_DATASET}.")
    if space is not None:
        rules = replace(rules, space=space_of_file(space, methods, dataset, rules.values))
    start: dict[str, Any] = {"use_preset": preset}
    start["enqueue"] = () if enqueue is None else read_configurations(enqueue, methods)
    _check_new(methods, dataset, name, None if dry_run else results, rules, **start)
    asked = replace(asked, machine=_machine(address, autoscale, one_node))
    plans = _plans(
        methods,
        dataset,
        name,
        **rules.given(),
        **start,
        **running.given(),
        **asked.given("cpus_per_trial"),
        data_root=data_root,
        results=results,
        command=command_line(),
    )
    for line in (line for plan in plans for line in plan.remarks):
        remark(f"Warm start: {line}.")
    if dry_run:
        print_plans(plans, json)
    else:
        _run(plans, json)


def _refuse_value_of_preset(methods: Sequence[str]) -> None:
    """Raise InputError where a word after `--preset`, meant as its value, would be read as a method."""
    from contrasweep.tuning.catalogue.declared import DECLARED_METHODS

    word = next((one for one in methods[1:] if one not in DECLARED_METHODS), None)
    if word is not None:
        raise InputError(
            f"{word!r} is no method. --preset takes no value: it starts from the papers' settings for the "
            "method and the dataset"
        )


def _check_new(
    methods: Sequence[str],
    dataset: str,
    name: str | None,
    results: str | None,
    rules: "SearchRules",
    **start: Any,
) -> None:
    """Check what is asked of new studies, as far as that needs no torch.

    Args:
        methods: the methods, one study each.
        dataset: the dataset.
        name: the name of the study, or the beginning of several names; None for one made of the time.
        results: the results folder; None for a dry run, to which a name may be given that is taken.
        rules: the rules of each search.
        start: the other options of `check_request`.

    Raises:
        InputError, StoreError: an option is wrong, or a study has the name.
    """
    from contrasweep.tuning.planning.request import check_request, studies_of

    for method in methods:
        check_request(method, dataset, rules, **start)
    if name is not None:
        from contrasweep.tuning.results.commands import RESUMABLE
        from contrasweep.tuning.store import check_new_name, open_location
        from contrasweep.tuning.store.study import OTHER_NAME, refuse_taken

        names = studies_of(name, methods).values()
        for one in (name, *names):
            check_new_name(one)
        if results is not None:
            refuse_taken(open_location(results), names, f"{OTHER_NAME} {RESUMABLE}.")


def _methods_of(name: str | None, results: str) -> list[str]:
    """Return the method of the study to resume, or those of the studies that begin with its name.

    Raises:
        StoreError: there is no such study.
    """
    if name is None:
        return []
    from contrasweep.tuning.catalogue.declared import DECLARED_METHODS
    from contrasweep.tuning.planning.request import study_of
    from contrasweep.tuning.store import ResultsStore, study_names

    store = ResultsStore(results)
    known = set(study_names(store.location))
    several = [one for one in DECLARED_METHODS if study_of(name, one) in known]
    if name in known or not several:
        return [store.study(name).method]
    return sorted(several, key=lambda one: store.study(study_of(name, one)).created)


def _stored(methods: Sequence[str], name: str, results: str) -> "StudyRecord":
    """Return the first of the studies to resume.

    Raises:
        StoreError: one is not there.
    """
    from contrasweep.tuning.planning.request import studies_of
    from contrasweep.tuning.store import ResultsStore

    store = ResultsStore(results)
    first, *_ = [store.study(study) for study in studies_of(name, methods).values()]
    return first


def _machine(address: str | None, autoscale: bool, one_node: bool) -> "Machine | None":
    """Return the machine on which trials run, None for this one; say what takes a while."""
    remark("Loading torch ..." if address is None else f"Loading torch, and asking the cluster {address} ...")
    return machine_at(address, autoscale, one_node)


def _plans(methods: Sequence[str], dataset: str, name: str | None, **options: Any) -> "list[SweepPlan]":
    """Return the plan of a new study for each method; `options` are those of `plan_sweep`."""
    from contrasweep.tuning.planning.plan_sweep import plan_sweep
    from contrasweep.tuning.planning.request import default_name, studies_of
    from contrasweep.tuning.store import check_new_name

    if len(methods) == 1:
        return [plan_sweep(methods[0], dataset, name=name, **options)]
    prefix = default_name("methods", dataset, datetime.now(UTC)) if name is None else check_new_name(name)
    named = studies_of(prefix, methods).items()
    return [plan_sweep(method, dataset, name=study, **options) for method, study in named]


def _run(plans: "Sequence[SweepPlan]", as_json: bool) -> None:
    plan = plans[0]
    if len(plans) == 1:
        remark(
            f"Study {plan.name}: {counted(plan.search.trials, 'trial')} of {plan.method} on {plan.dataset}, "
            f"{plan.resources.concurrency} at once; results in {plan.results}"
        )
    else:
        names = ", ".join(plan.name for plan in plans)
        each = f"{counted(plan.search.trials, 'trial')} each on {plan.dataset}"
        remark(f"Studies {names}: {each}; results in {plan.results}")
    say_what_runs(plans)
    from contrasweep.tuning.planning.request import prefix_of
    from contrasweep.tuning.ray.sweep import run_sweep
    from contrasweep.tuning.ray.sweep_group import sweep_group

    if len(plans) == 1:
        with failures_in_json(plan.name, plan.results, as_json):
            with progress_line() as line:
                result = run_sweep(plan, line.progress)
            report_sweep(result, as_json)
        return
    with progress_line() as line:
        done = sweep_group(plans, line.study)
    report_methods(done, prefix_of(plan.name, plan.method), plan.results, as_json)


def _check_resume(
    methods: Sequence[str],
    name: str | None,
    results: str,
    resume: bool,
    extend: int | None,
    trials: int | None,
    new: bool,
) -> str:
    """Return the name that a resumed study needs; `new` says that an option of new studies was given."""
    check_count("extend", extend)
    if new:
        raise InputError("--resume continues a study as planned: leave out --dry-run, --preset and --enqueue")
    if resume and extend is not None:
        raise InputError("give --resume or --extend: --extend N adds N trials each time, --resume adds none")
    if extend is not None and trials is not None:
        raise InputError("--extend N adds N trials to those planned: leave out --trials")
    if extend is not None and len(methods) > 1:
        raise InputError("--extend takes one study: name one method")
    if name is None:
        one = "--resume and --extend need the study's --name"
        needs = one if len(methods) < 2 else "--resume needs the --name that the studies begin with"
        raise InputError(f"{needs}; `{studies_command(results)}` lists them")
    return name


def _resume(
    methods: Sequence[str],
    name: str,
    results: str,
    expected: Mapping[str, Any],
    as_json: bool,
    **options: Any,
) -> None:
    """Resume the study of each method; `options` are those of `resume_sweep`."""
    from contrasweep.tuning.planning.request import studies_of
    from contrasweep.tuning.planning.resume_check import Expected
    from contrasweep.tuning.ray.sweep import resume_sweep
    from contrasweep.tuning.ray.sweep_group import resume_group

    if len(methods) == 1:
        agreed = Expected(method=methods[0], **expected)
        with failures_in_json(name, results, as_json):
            with progress_line() as line:
                result = resume_sweep(name, results, expected=agreed, progress=line.progress, **options)
            report_sweep(result, as_json)
        return
    named = studies_of(name, methods).items()
    by_study = {study: Expected(method=method, **expected) for method, study in named}
    with progress_line() as line:
        done = resume_group(list(by_study), results, expected=by_study, show=line.study, **options)
    report_methods(done, name, results, as_json)
