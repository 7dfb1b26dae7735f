"""The command line: each command is one function, which calls the library."""

import typer

from contrasweep.tuning.cli import (
    catalogue,
    clusters,
    datasets,
    pages,
    run,
    studies,
    sweep,
    tables,
    train,
    verify,
)
from contrasweep.tuning.cli.errors import reporting_errors

app = typer.Typer(
    name="contrasweep",
    help="Search, reproduce and finish contrastive-pretraining experiments, on a laptop or a Ray cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (
    sweep.sweep,
    train.train,
    studies.studies,
    studies.show,
    studies.best,
    pages.report,
    run.run,
    pages.sensitivity,
    catalogue.methods,
    catalogue.spaces,
    clusters.clusters,
    tables.tables,
    tables.table,
    verify.verify,
    catalogue.compact,
):
    app.command()(reporting_errors(command))
app.add_typer(datasets.app, name="datasets")


def main() -> None:
    """Run the command line and exit with its code."""
    app()
