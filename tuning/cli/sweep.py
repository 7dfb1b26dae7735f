"""`contrasweep sweep`: search a method's hyperparameters on a dataset."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
    GpusPerWorker,
    Preset,
    Results,
    Set,
    Workers,
    command_line,
    machine_at,
    parse_settings,
)
from contrasweep.tuning.cli.progress import progress_line, sweep_line
from contrasweep.tuning.cli.sweep_report import print_plans, report_sweep, say_what_differs
from contrasweep.tuning.errors import InputError

if TYPE_CHECKING:
    from contrasweep.search_spaces import Space
    from contrasweep.tuning.planning.plan import SweepPlan
    from contrasweep.tuning.planning.resources import Machine
    from contrasweep.tuning.planning.resume_check import Expected
    from contrasweep.tuning.ray.sweep import SweepResult

DEFAULT_DATASET = "colour-digits"

Methods = Annotated[
    list[str],
    typer.Argument(
        metavar="METHOD...",
        help="Method to search; `contrasweep methods` lists them. Several are searched one after "
        "the other, each with the same budget, in studies NAME-METHOD.",
    ),
]
Data = Annotated[str | None, typer.Option(help="Dataset; default: colour-digits, which is embedded.")]
Trials = Annotated[
    int | None,
    typer.Option(help="Configurations to try, including the defaults; default: 24, or the whole grid."),
]
Epochs = Annotated[int | None, typer.Option(help="Epochs of a trial that is not stopped early.")]
SpaceFile = Annotated[Path | None, typer.Option(help="Search space (YAML) in place of the method's own.")]
Sampler = Annotated[str | None, typer.Option(help="tpe (default), gp, cmaes, random or grid.")]
GridPoints = Annotated[
    int | None, typer.Option(help="With --sampler grid: cut each range of the space into so many levels.")
]
Scheduler = Annotated[str | None, typer.Option(help="asha (default) stops weak trials early; none does not.")]
Metric = Annotated[
    str | None,
    typer.Option(
        help="What is maximised on the validation split; default: an accuracy. "
        "Several, with commas between them, give a Pareto front."
    ),
]
AshaMetric = Annotated[
    str | None, typer.Option(help="Metric by which asha compares trials; default: the first metric.")
]
Seed = Annotated[int | None, typer.Option(help="Seed of the proposals; default: 0.")]
Seeds = Annotated[int | None, typer.Option(help="Seeds of each trial; their mean counts; default: 1.")]
WarmStart = Annotated[
    str | None, typer.Option(help="Begin with the trials of these studies (comma-separated names).")
]
Storage = Annotated[
    str | None,
    typer.Option(help="Copy the search to this database, sqlite:///FILE, for optuna-dashboard to watch."),
]
CpusPerTrial = Annotated[
    int | None, typer.Option(help="Cores (and threads) per trial, or per worker of one; default: 1.")
]
MaxFailures = Annotated[
    int | None,
    typer.Option(help="How often a trial whose worker died restarts from its checkpoint; default: 1."),
]
TrialTimeout = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="A trial that takes longer counts as failed; default: no limit."),
]
Name = Annotated[str | None, typer.Option(help="Name of the study.")]
Resume = Annotated[bool, typer.Option(help="Resume the study --name where it was interrupted.")]
Extend = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Resume the study --name and try N more configurations."),
]
DryRun = Annotated[bool, typer.Option(help="Print the first configurations and stop.")]


def sweep(
    methods: Methods,
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
    seed: Seed = None,
    seeds: Seeds = None,
    warm_start: WarmStart = None,
    storage: Storage = None,
    concurrency: Concurrency = None,
    cpus_per_trial: CpusPerTrial = None,
    workers: Workers = None,
    gpus_per_worker: GpusPerWorker = None,
    device: Device = None,
    address: Address = None,
    max_failures: MaxFailures = None,
    trial_timeout: TrialTimeout = None,
    data_root: DataRoot = None,
    results: Results = RESULTS,
    name: Name = None,
    resume: Resume = False,
    extend: Extend = None,
    dry_run: DryRun = False,
    json: AsJson = False,
) -> None:
    """Search a method's hyperparameters on a dataset.

    Example: contrasweep sweep fair-cclk --data colour-digits --trials 24 --epochs 10

    Example: contrasweep sweep fair-cclk infonce --data colour-digits --trials 24 --name compared
    """
    from contrasweep.search_spaces import load_space

    options = _Options(
        methods=methods,
        dataset=data,
        values=parse_settings(set_),
        epochs=epochs,
        space=None if space is None else load_space(space),
        preset=preset,
        rules={
            "trials": trials,
            "sampler": sampler,
            "grid_points": grid_points,
            "scheduler": scheduler,
            "metric": metric,
            "asha_metric": asha_metric,
            "seed": seed,
            "seeds": seeds,
            "warm_start": None if warm_start is None else warm_start.split(","),
        },
        running={
            "concurrency": concurrency,
            "workers": workers,
            "data_root": data_root,
            "storage": storage,
        },
        limits={"max_failures": max_failures, "trial_timeout": trial_timeout},
        cpus=cpus_per_trial,
        gpus=gpus_per_worker,
        device=device,
        machine=machine_at(address),
        results=results,
        name=name,
        as_json=json,
    )
    if resume or extend is not None:
        if dry_run or preset:
            raise InputError("--resume continues a study as planned: leave out --dry-run and --preset")
        if resume and extend is not None:
            raise InputError(
                "give --resume or --extend: --extend N adds N trials each time, --resume adds none"
            )
        _go_on(options, extend)
    else:
        _begin(options, dry_run)


@dataclass(frozen=True)
class _Options:
    """The options of the command; None means that an option was not given.

    Attributes:
        rules: the options of the search, named as in `plan_sweep`.
        running: the options of running trials, named as in `plan_sweep` and `resume_sweep`.
        limits: the arguments of `planning.plan.Limits`.
        cpus: cores per trial, or per worker of a trial.
        gpus: GPUs per worker.
        machine: the cluster at `--address`.
    """

    methods: Sequence[str]
    dataset: str | None
    values: Mapping[str, Any]
    epochs: int | None
    space: "Space | None"
    preset: bool
    rules: Mapping[str, Any]
    running: Mapping[str, Any]
    limits: Mapping[str, Any]
    cpus: int | None
    gpus: float | None
    device: str | None
    machine: "Machine | None"
    results: str
    name: str | None
    as_json: bool

    @property
    def expected(self) -> "Expected":
        """The options that a resumed study must agree with."""
        from contrasweep.tuning.planning.resume_check import Expected

        epochs = {} if self.epochs is None else {"epochs": self.epochs}
        return Expected(
            dataset=self.dataset,
            space=self.space,
            values={**self.values, **epochs},
            cpus=self.cpus,
            **self.rules,
        )


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _begin(options: _Options, dry_run: bool) -> None:
    """Plan a new study for each method, then run the studies or print their plans."""
    from contrasweep.tuning.planning.plan_sweep import default_name
    from contrasweep.tuning.ray.sweep import study_of

    several = len(options.methods) > 1
    prefix = options.name or default_name("methods", options.dataset or DEFAULT_DATASET, datetime.now(UTC))
    plans = [
        _plan(options, method, study_of(prefix, method) if several else options.name)
        for method in options.methods
    ]
    if not options.as_json:
        say_what_differs(plans, options.rules["trials"], options.running["concurrency"])
    if dry_run:
        print_plans(plans, options.as_json)
    elif several:
        sweep_methods(plans, prefix, options.as_json, options.machine)
    else:
        report_sweep(_run(plans[0]), options.as_json)


def _plan(options: _Options, method: str, name: str | None) -> "SweepPlan":
    from contrasweep.tuning.planning.plan import Limits
    from contrasweep.tuning.planning.plan_sweep import plan_sweep
    from contrasweep.tuning.planning.resources import AUTO, gpus_for

    return plan_sweep(
        method,
        options.dataset or DEFAULT_DATASET,
        **_given({**options.rules, **options.running, "cpus_per_trial": options.cpus}),
        epochs=options.epochs,
        values=options.values,
        space=options.space,
        use_preset=options.preset,
        gpus_per_worker=gpus_for(options.device or AUTO, options.gpus, options.machine),
        machine=options.machine,
        limits=Limits(**_given(options.limits)),
        results=options.results,
        name=name,
        command=command_line(),
    )


def _go_on(options: _Options, extend: int | None) -> None:
    """Resume the study of one method, or of each of several; `extend` is how many trials to add."""
    from contrasweep.tuning.planning.resources import gpus_for
    from contrasweep.tuning.ray.sweep import resume_sweep

    if extend is not None and options.rules["trials"] is not None:
        raise InputError("--extend N adds N trials to those planned: leave out --trials")
    running = {**options.running, **options.limits, "machine": options.machine}
    running["gpus_per_worker"] = (
        options.gpus if options.device is None else gpus_for(options.device, options.gpus, options.machine)
    )
    if len(options.methods) > 1:
        if extend is not None:
            raise InputError("--extend takes one study: name one method")
        resume_methods(
            options.methods, options.name, options.results, options.expected, options.as_json, **running
        )
        return
    if options.name is None:
        raise InputError("--resume and --extend need the study's --name; `contrasweep studies` lists them")
    with progress_line() as line:
        result = resume_sweep(
            options.name,
            options.results,
            expected=replace(options.expected, method=options.methods[0]),
            extend=extend or 0,
            show=lambda progress: line.show(sweep_line(progress, line.elapsed)),
            **running,
        )
    report_sweep(result, options.as_json)


def _run(plan: "SweepPlan") -> "SweepResult":
    from contrasweep.tuning.ray.sweep import run_sweep

    Console(stderr=True, highlight=False, markup=False).print(
        f"Study {plan.name}: {plan.trials} trials of {plan.method} on {plan.dataset}, "
        f"{plan.resources.concurrency} at once; results in {plan.results}"
    )
    with progress_line() as line:
        return run_sweep(plan, show=lambda progress: line.show(sweep_line(progress, line.elapsed)))
