"""The command line: each command is one function, which calls the library."""

import os
from typing import Annotated

import typer

from contrasweep.tuning.cli import (
    catalogue,
    clusters,
    copying,
    datasets,
    delete,
    embed,
    eval,
    export,
    new,
    pages,
    pool,
    replay,
    run,
    stability,
    studies,
    sweep,
    table,
    tables,
    track,
    train,
    verify,
)
from contrasweep.tuning.cli.errors import add_command, first_line
from contrasweep.tuning.cli.rendering import say
from contrasweep.tuning.cli.usage import Group
from contrasweep.version import __version__


def _print_version(asked: bool) -> None:
    if asked:
        say(f"contrasweep {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=Group,
    name="contrasweep",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Search, train and reproduce contrastive-pretraining experiments, on a laptop or a Ray cluster."""


for command in (
    sweep.sweep,
    train.train,
    studies.studies,
    studies.show,
    studies.best,
    pages.report,
    run.run,
    eval.eval,
    embed.embed,
    export.export,
    track.track,
    pages.sensitivity,
    replay.replay,
    pool.pool,
    stability.stability,
    catalogue.methods,
    catalogue.spaces,
    catalogue.metrics,
    clusters.clusters,
    tables.tables,
    table.table,
    verify.verify,
    catalogue.compact,
    copying.copy,
    delete.delete,
    new.new,
):
    add_command(app, command)
app.add_typer(datasets.app, name="datasets", short_help=first_line(datasets.datasets))


def main() -> None:
    """Run the command line and exit with its code."""
    # Ray reads this when it is imported. Without it, the end of the log of a process of Ray that died comes
    # between our lines. We say ourselves what died.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    app()
