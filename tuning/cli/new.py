"""`contrasweep new`: begin a plug-in."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from contrasweep.tuning.cli.rendering import say


def new(
    kind: Annotated[str, typer.Argument(help="What to create: method, encoder, dataset or metric.")],
    name: Annotated[
        str, typer.Argument(help="Its name, such as my-loss; the name of a metric has underscores: my_score.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="The folder to write; default: contrasweep-NAME."),
    ] = None,
) -> None:
    """Write a working package with a new plug-in and its test, as a starting point.

    Example: contrasweep new method my-loss
    """
    from contrasweep.tuning.skeletons.writing import write_skeleton

    folder = Path(f"contrasweep-{name.replace('_', '-')}") if output is None else output
    for path in write_skeleton(kind, name, folder):
        say(str(path))
    installed = shlex.quote(f"{folder}[test]")
    say(f"Next: pip install --editable {installed}, then python -m pytest {shlex.quote(str(folder))}.")
