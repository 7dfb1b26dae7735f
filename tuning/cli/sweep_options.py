"""The options that `contrasweep sweep` alone has."""

from pathlib import Path
from typing import Annotated

import typer

from contrasweep.tuning.cli.completion import (
    complete_datasets,
    complete_methods,
    complete_samplers,
    complete_studies,
)

Methods = Annotated[
    list[str],
    typer.Argument(
        metavar="METHOD...",
        autocompletion=complete_methods,
        help="Method to search; `contrasweep methods` lists them. Several are searched one after "
        "the other, each with the same budget, in studies NAME-METHOD.",
    ),
]
Data = Annotated[
    str | None,
    typer.Option(
        help="Dataset; default: colour-digits, which is embedded.", autocompletion=complete_datasets
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
    typer.Option(help="tpe (default), curves, gp, cmaes, random or grid.", autocompletion=complete_samplers),
]
GridPoints = Annotated[
    int | None, typer.Option(help="With --sampler grid: cut each range of the space into so many levels.")
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        help="asha (default) and curves stop weak trials early, curves by the model of --sampler curves; "
        "none does not."
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        help="What is maximised on the validation split; default: an accuracy. "
        "Several, with commas between them, give a Pareto front."
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        metavar="METRIC>=NUMBER",
        help="Look for the best trial among those that keep this condition (or <=, >, <); may be repeated.",
    ),
]
AshaMetric = Annotated[
    str | None, typer.Option(help="Metric by which asha compares trials; default: the first metric.")
]
Eta = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Asha lets one in N of the trials that reach a rung go on, and each rung is N times as late as "
        "the one before; default: 3.",
    ),
]
Grace = Annotated[
    int | None,
    typer.Option(
        metavar="EPOCHS",
        help="Epochs that asha gives every trial; default: the warmup of the learning rate and a tenth of "
        "all.",
    ),
]
Seed = Annotated[int | None, typer.Option(help="Seed of the proposals; default: 0.")]
Seeds = Annotated[
    int | None, typer.Option(help="Seeds of each trial; their mean counts; default: 1, on Scene 4.")
]
WarmStart = Annotated[
    str | None, typer.Option(help="Begin with the trials of these studies (comma-separated names).")
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
    typer.Option(help="Copy the search to this database, sqlite:///FILE, for optuna-dashboard to watch."),
]
MaxFailures = Annotated[
    int | None,
    typer.Option(help="How often a trial whose worker died restarts from its checkpoint; default: 1."),
]
TrialTimeout = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="A trial that takes longer counts as failed; default: no limit."),
]
Budget = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Begin no further trial after 8h, 90m or 1h30m of trials by the clock, over all resumed parts; "
        "default: no limit.",
    ),
]
StopWhen = Annotated[
    str | None,
    typer.Option(
        metavar="CONDITION",
        help="Begin no further trial once the best score rose by too little over the last trials: less than "
        "its noise ('gain<noise for 20') or than a number ('gain<0.005 for 20'); default: never.",
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
        help="Go on with the study --name that was interrupted: what was finished is kept, trials that "
        "were not continue from their checkpoints, and the trials that are left are run."
    ),
]
RetryFailed = Annotated[
    bool,
    typer.Option("--retry-failed", help="With --resume or --extend: run the trials that failed again."),
]
Extend = Annotated[
    int | None,
    typer.Option(metavar="N", help="Resume the study --name and try N more configurations."),
]
DryRun = Annotated[bool, typer.Option(help="Print the first configurations and stop.")]
