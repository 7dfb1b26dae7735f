"""`contrasweep track`: copy a study to MLflow or Weights & Biases."""

import time
from typing import Annotated

import typer

from contrasweep.names import counted
from contrasweep.tuning.cli.completion import complete_studies
from contrasweep.tuning.cli.options import Results
from contrasweep.tuning.cli.rendering import remark, say
from contrasweep.tuning.results.commands import RESULTS


def track(
    study: Annotated[str, typer.Argument(help="Name of the study.", autocompletion=complete_studies)],
    to: Annotated[
        str,
        typer.Option(metavar="mlflow[:URI]|wandb", help="The tracker; for MLflow, you can add its address."),
    ],
    project: Annotated[
        str | None,
        typer.Option(help="Experiment (MLflow) or project (W&B) for the copy; default: contrasweep."),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="While a sweep runs: continue until it has ended."),
    ] = False,
    results: Results = RESULTS,
) -> None:
    """Copy a study to MLflow or Weights & Biases: every trial, its settings, its curves and how it ended.

    Data that the tracker already has is not sent again, so you can repeat the command.

    Example: contrasweep track my-study --to mlflow:http://localhost:5000

    Example: contrasweep track my-study --to wandb --follow
    """
    from contrasweep.tuning.store import ResultsStore
    from contrasweep.tuning.track import tracking

    kind = tracking.check_tracker(to)
    store = ResultsStore(results)
    store.study(study)
    remark(f"Connecting to {kind} ...")
    tracker = tracking.tracker_at(to, project or tracking.PROJECT)
    if follow:
        tracking.follow(store, study, tracker, time.sleep, _tell)
    else:
        _tell(*tracking.track(store, study, tracker))


def _tell(runs: int, changed: int) -> None:
    told = f"sent {changed}; the others were already there" if 0 < changed < runs else "all sent"
    there = f"{counted(runs, 'run')} in the tracker, including the study itself"
    say(f"{there}: {told if changed else 'nothing is new'}.")
