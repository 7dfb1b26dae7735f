"""The options that `contrasweep sweep` alone has."""

from pathlib import Path
from typing import Annotated

import typer

from contrasweep.tuning.cli.completion import (
    complete_datasets,
    complete_methods,
    complete_metrics,
    complete_samplers,
    complete_studies,
)

Methods = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="METHOD...",
        autocompletion=complete_methods,
        help="Method to search; `contrasweep methods` lists them. Several are searched one after "
        "the other, each with the same budget, in studies NAME-METHOD. "
        "With --resume or --extend, you can leave them out; the study names them.",
    ),
]
Data = Annotated[
    str | None,
    typer.Option(
        help="Dataset; default: colour-digits, which needs no download.", autocompletion=complete_datasets
    ),
]
Trials = Annotated[
    int | None,
    typer.Option(help="Configurations to try, including the defaults; default: 24, or the whole grid."),
]
Epochs = Annotated[
    int | None,
    typer.Option(help="Epochs of a trial that is not stopped early; default: the dataset's, or 10."),
]
SpaceFile = Annotated[Path | None, typer.Option(help="Search space (YAML) in place of the method's own.")]
Sampler = Annotated[
    str | None,
    typer.Option(
        help="curves (default), tpe (default with several metrics), gp, cmaes, random or grid.",
        autocompletion=complete_samplers,
    ),
]
GridPoints = Annotated[
    int | None, typer.Option(help="With --sampler grid: number of levels into which each range is cut.")
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        help="asha (default) or curves stops weak trials early (curves uses the model of --sampler curves); "
        "with asha+curves (default with --sampler curves and five trials or more in parallel), either does; "
        "none stops no trial."
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        help="Metric to optimise on the validation split; default: an accuracy. "
        "Several, separated by commas, give a Pareto front. `contrasweep metrics` lists them.",
        autocompletion=complete_metrics,
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        metavar="METRIC>=NUMBER",
        help="Search for the best trial that satisfies this condition (or <=, >, <); may be repeated.",
        autocompletion=complete_metrics,
    ),
]
AshaMetric = Annotated[
    str | None,
    typer.Option(
        help="Metric by which asha compares trials; default: the first metric.",
        autocompletion=complete_metrics,
    ),
]
Eta = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="At each rung (an epoch at which asha compares trials), one in N trials continues; "
        "each rung has N times as many epochs as the previous one; default: 3.",
    ),
]
Grace = Annotated[
    int | None,
    typer.Option(
        metavar="EPOCHS",
        help="Epochs that every trial trains before asha may stop it; "
        "default: the warmup of the learning rate plus a tenth of all epochs.",
    ),
]
Seed = Annotated[int | None, typer.Option(help="Seed of the sampler; default: 0.")]
Seeds = Annotated[
    int | None, typer.Option(help="Seeds per trial; their mean is its score; default: 1 (Scene: 4).")
]
WarmStart = Annotated[
    str | None,
    typer.Option(
        help="Start from these earlier studies (comma-separated names): learn from their trials, or, if they "
        "searched on another dataset, run their best configurations first."
    ),
]
Enqueue = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Run these configurations first, after the defaults: a YAML list, or a best.yaml.",
    ),
]
Storage = Annotated[
    str | None,
    typer.Option(help="Also write the search to this database, sqlite:///FILE, for optuna-dashboard."),
]
MaxFailures = Annotated[
    int | None,
    typer.Option(help="How often a trial restarts from its checkpoint after its worker died; default: 1."),
]
TrialTimeout = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="A trial that takes longer counts as failed; default: no limit."),
]
Budget = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Start no new trial after this wall-clock time (8h, 90m, 1h30m), summed over resumed parts; "
        "default: no limit.",
    ),
]
StopWhen = Annotated[
    str | None,
    typer.Option(
        metavar="CONDITION",
        help="Start no new trial when the last N trials have raised the best score by less than its noise "
        "('gain<noise for 20') or by less than a number ('gain<0.005 for 20'); default: never.",
    ),
]
KeepWeights = Annotated[
    int | None,
    typer.Option(metavar="K", help="Keep the encoders of the K best trials, for `export`; default: 1."),
]
Name = Annotated[
    str | None,
    typer.Option(help="Name of the study; default: METHOD-DATASET-TIME.", autocompletion=complete_studies),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Continue the interrupted study --name: finished trials are kept, unfinished trials continue "
        "from their checkpoints, and the remaining trials are run.",
    ),
]
RetryFailed = Annotated[
    bool,
    typer.Option("--retry-failed", help="With --resume or --extend: also run the failed trials again."),
]
Extend = Annotated[
    int | None,
    typer.Option(metavar="N", help="Resume the study --name and run N more trials."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the first configurations and stop.")]
