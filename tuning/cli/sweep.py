"""`contrasweep sweep`: search a method's hyperparameters on a dataset."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from contrasweep.tuning.cli.group import resume_methods, sweep_methods
from contrasweep.tuning.cli.options import (
    RESULTS,
    Address,
    AsJson,
    Concurrency,
    DataRoot,
    Device,
    Extend,
    GpusPerWorker,
    MaxFailures,
    Results,
    Set,
    TrialTimeout,
    Workers,
    command_line,
    machine_at,
    parse_settings,
    results_option,
)
from contrasweep.tuning.cli.progress import progress_line, sweep_line
from contrasweep.tuning.cli.rendering import configuration, print_json, print_rows, say, warn
from contrasweep.tuning.errors import InputError

if TYPE_CHECKING:
    from contrasweep.tuning.planning.plan import SweepPlan
    from contrasweep.tuning.ray.sweep import SweepResult

DEFAULT_DATASET = "colour-digits"
DRY_RUN_TRIALS = 5
MOST_FAILURES = 5
"""Beyond so many, `contrasweep show` has the others."""


def sweep(
    methods: Annotated[
        list[str],
        typer.Argument(
            metavar="METHOD...",
            help="Method to search; `contrasweep methods` lists them. Several are searched one after "
            "the other, each with the same budget, in studies NAME-METHOD.",
        ),
    ],
    data: Annotated[
        str | None, typer.Option(help="Dataset; default: colour-digits, which is embedded.")
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(help="Configurations to try, including the defaults; default: 24, or the whole grid."),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs of a trial that is not stopped early.")] = None,
    space: Annotated[
        Path | None, typer.Option(help="Search space (YAML) in place of the method's own.")
    ] = None,
    set_: Set = None,
    preset: Annotated[bool, typer.Option(help="Start from the papers' settings for this dataset.")] = False,
    sampler: Annotated[str | None, typer.Option(help="tpe (default), gp, cmaes, random or grid.")] = None,
    grid_points: Annotated[
        int | None, typer.Option(help="With --sampler grid: cut each range of the space into so many levels.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="asha (default) stops weak trials early; none does not.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="What is maximised on the validation split; default: an accuracy. "
            "Several, with commas between them, give a Pareto front."
        ),
    ] = None,
    asha_metric: Annotated[
        str | None, typer.Option(help="Metric by which asha compares trials; default: the first metric.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the proposals; default: 0.")] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Seeds of each trial; their mean counts; default: 1.")
    ] = None,
    warm_start: Annotated[
        str | None,
        typer.Option(help="Begin with the trials of these studies (comma-separated names)."),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(help="Copy the search to this database, sqlite:///FILE, for optuna-dashboard to watch."),
    ] = None,
    concurrency: Concurrency = None,
    cpus_per_trial: Annotated[
        int | None, typer.Option(help="Cores (and threads) per trial, or per worker of one; default: 1.")
    ] = None,
    workers: Workers = None,
    gpus_per_worker: GpusPerWorker = None,
    device: Device = None,
    address: Address = None,
    max_failures: MaxFailures = None,
    trial_timeout: TrialTimeout = None,
    data_root: DataRoot = None,
    results: Results = RESULTS,
    name: Annotated[str | None, typer.Option(help="Name of the study.")] = None,
    resume: Annotated[bool, typer.Option(help="Resume the study --name where it was interrupted.")] = False,
    extend: Extend = None,
    dry_run: Annotated[bool, typer.Option(help="Print the first configurations and stop.")] = False,
    json: AsJson = False,
) -> None:
    """Search a method's hyperparameters on a dataset.

    Example: contrasweep sweep fair-cclk --data colour-digits --trials 24 --epochs 10

    Example: contrasweep sweep fair-cclk infonce --data colour-digits --trials 24 --name compared
    """
    from contrasweep.search_spaces import load_space
    from contrasweep.tuning.planning.devices import AUTO, gpus_for
    from contrasweep.tuning.planning.limits import Limits
    from contrasweep.tuning.planning.plan_sweep import default_name, plan_sweep
    from contrasweep.tuning.ray.sweep import study_of

    values = parse_settings(set_)
    given_space = load_space(space) if space is not None else None
    rules: dict[str, Any] = {
        "trials": trials,
        "sampler": sampler,
        "grid_points": grid_points,
        "scheduler": scheduler,
        "metric": metric,
        "asha_metric": asha_metric,
        "seed": seed,
        "seeds": seeds,
        "warm_start": None if warm_start is None else warm_start.split(","),
    }
    limits = Limits(1 if max_failures is None else max_failures, trial_timeout)
    machine = machine_at(address)
    if resume or extend is not None:
        if dry_run or preset:
            raise InputError("--resume goes on with a study as it was planned: no --dry-run, no --preset")
        if resume and extend is not None:
            raise InputError(
                "--extend N adds N trials each time that it is given: to go on with them, --resume alone"
            )
        if extend is not None and trials is not None:
            raise InputError("--extend N adds N trials to those planned: no --trials")
        given = {**values, **({} if epochs is None else {"epochs": epochs})}
        _go_on(
            methods,
            name,
            results,
            expected={
                "dataset": data,
                "space": given_space,
                "values": given,
                "cpus": cpus_per_trial,
                **rules,
            },
            extend=extend,
            as_json=json,
            data_root=data_root,
            concurrency=concurrency,
            workers=workers,
            gpus_per_worker=gpus_per_worker if device is None else gpus_for(device, gpus_per_worker, machine),
            machine=machine,
            max_failures=max_failures,
            trial_timeout=trial_timeout,
            storage=storage,
        )
        return
    dataset, several = data or DEFAULT_DATASET, len(methods) > 1
    prefix = name or default_name("methods", dataset, datetime.now(UTC))
    plans = [
        plan_sweep(
            method,
            dataset,
            **{rule: value for rule, value in rules.items() if value is not None},
            epochs=epochs,
            values=values,
            space=given_space,
            use_preset=preset,
            storage=storage,
            concurrency=concurrency,
            cpus_per_trial=1 if cpus_per_trial is None else cpus_per_trial,
            workers=1 if workers is None else workers,
            gpus_per_worker=gpus_for(device or AUTO, gpus_per_worker, machine),
            machine=machine,
            limits=limits,
            data_root=data_root,
            results=results,
            name=study_of(prefix, method) if several else name,
            command=command_line(),
        )
        for method in methods
    ]
    if not json:
        _say_what_differs(plans, trials, concurrency)
    if dry_run:
        _print_plans(plans, json)
        return
    if several:
        sweep_methods(plans, prefix, json, machine)
    else:
        _report(_run(plans[0]), json)


def _run(plan: "SweepPlan") -> "SweepResult":
    from contrasweep.tuning.ray.sweep import run_sweep

    Console(stderr=True, highlight=False, markup=False).print(
        f"Study {plan.name}: {plan.trials} trials of {plan.method} on {plan.dataset}, "
        f"{plan.resources.concurrency} at once; results in {plan.results}"
    )
    with progress_line() as line:
        return run_sweep(plan, show=lambda progress: line.show(sweep_line(progress, line.elapsed)))


def _go_on(
    methods: Sequence[str],
    name: str | None,
    results: str,
    *,
    expected: Mapping[str, Any],
    extend: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Resume one study, or a group; `options` are those of `ray.sweep.resume_sweep`."""
    from contrasweep.tuning.ray.sweep import resume_sweep

    if len(methods) > 1:
        if extend is not None:
            raise InputError("--extend goes with one study: name one method")
        resume_methods(methods, name, results, expected, as_json, **options)
        return
    if name is None:
        raise InputError("--resume and --extend need the study's --name; `contrasweep studies` lists them")
    with progress_line() as line:
        result = resume_sweep(
            name,
            results,
            expected={**expected, "method": methods[0]},
            extend=extend or 0,
            show=lambda progress: line.show(sweep_line(progress, line.elapsed)),
            **options,
        )
    _report(result, as_json)


def _say_what_differs(plans: "Sequence[SweepPlan]", trials: int | None, concurrency: int | None) -> None:
    """Say where a plan is not what was asked for, or where it begins with what other studies found."""
    from contrasweep.tuning.planning.resources import counted

    for plan in plans:
        if trials is not None and plan.trials < trials:
            warn(f"the grid has {plan.trials} points: {plan.trials} trials, each point once, not {trials}.")
        at_once = plan.resources.concurrency
        if concurrency is not None and at_once < min(concurrency, plan.trials):
            fit = f"{counted(at_once, 'trial')} of {plan.resources.in_words} at once"
            warn(f"this machine has room for {fit}, not {concurrency}.")
        for remark in plan.warm.remarks:
            say(f"Warm start: {remark}.")


def _print_plans(plans: "Sequence[SweepPlan]", as_json: bool) -> None:
    """Print what sweeps would do: their first configurations, their resources, and the most they can cost."""
    if as_json:
        told = [_dry_run(plan) for plan in plans]
        print_json(told[0] if len(told) == 1 else told)
        return
    for plan in plans:
        _print_plan(plan)


def _dry_run(plan: "SweepPlan") -> dict[str, Any]:
    study = plan.new_study()
    first: list[dict[str, Any]] = []
    for _ in range(min(DRY_RUN_TRIALS, plan.trials)):
        proposal = study.ask()
        first.append({"trial": proposal.number, "configuration": dict(proposal.values)})
    at_most = plan.trials * plan.seeds * plan.experiment.epochs
    return {"study": plan.record().model_dump(mode="json"), "first": first, "epochs_at_most": at_most}


def _print_plan(plan: "SweepPlan") -> None:
    told = _dry_run(plan)
    print_rows(
        f"{plan.method} on {plan.dataset}: the first of {plan.trials} trials",
        [
            {"trial": row["trial"], "configuration": configuration(row["configuration"])}
            for row in told["first"]
        ],
        footer=f"{plan.resources.concurrency} trials at once, {plan.resources.in_words}; "
        f"at most {told['epochs_at_most']} epochs in all"
        + (", fewer as asha stops weak trials" if plan.scheduler == "asha" else "")
        + ("." if plan.sampler in ("grid", "random") else ". Later proposals depend on results."),
    )


def _report(result: "SweepResult", as_json: bool) -> None:
    """Print the best trials of a finished sweep beside the untrained encoder, and how to go on."""
    from contrasweep.tuning.cli.studies import failed_trials, selected_row
    from contrasweep.tuning.results.selection import best_trials
    from contrasweep.tuning.store import ResultsStore

    plan, store = result.plan, ResultsStore(result.plan.results)
    selected = best_trials(store, plan.name, top=5 if len(plan.metrics) == 1 else None)
    rows = [selected_row(trial) for trial in selected]
    if as_json:
        failed = failed_trials(store, plan.name)
        print_json({"study": plan.name, "counts": dict(result.counts), "best": rows, "failed": failed})
        return
    print_rows(
        f"{plan.name}: the best of {plan.trials} trials", rows, footer=study_footer(plan, result.counts)
    )
    where = results_option(plan.results)
    if not selected[0].beats_untrained:
        warn("no trial beats the untrained encoder it started from.")
    if result.counts.get("failed"):
        warn(f"{result.counts['failed']} trials failed (`contrasweep show {plan.name}{where}`):")
        for trial in failed_trials(store, plan.name)[:MOST_FAILURES]:
            say(f"  trial {trial['trial']}: {trial['error']}")
    say(f"Next: contrasweep best {plan.name}{where} -o best.yaml")


def study_footer(plan: "SweepPlan", counts: Mapping[str, int]) -> str:
    """Return what the figures above it rest on: endings, seeds, epochs, the rule of selection."""
    endings = ", ".join(f"{count} {status}" for status, count in counts.items())
    return (
        f"{endings}; {_seeds(plan)} a trial, {plan.experiment.epochs} epochs at most; "
        f"selected by {plan.metric} on the validation split, so the score is optimistic: "
        "`contrasweep run` tests it on fresh seeds."
    )


def _seeds(plan: "SweepPlan") -> str:
    first = plan.experiment.seed
    return (
        f"one seed ({first})"
        if plan.seeds == 1
        else f"{plan.seeds} seeds ({first} to {first + plan.seeds - 1})"
    )
