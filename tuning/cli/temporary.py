"""`--tmp FOLDER`: where Ray and we put temporary files."""

import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from contrasweep.tuning.cli.errors import reporting_errors
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.files import check_folder

MOST_CHARACTERS = 40
"""Ray puts sockets in folders below it, and the path of a socket has 107 characters at most."""


def use_folder(folder: Path) -> None:
    """Have this process, and those that it starts, put temporary files into a folder; it is made if missing.

    Raises:
        InputError: the path is too long, or no folder can be there.
    """
    path = folder.expanduser().absolute()
    check_folder(path, "--tmp")
    if len(str(path)) > MOST_CHARACTERS:
        raise InputError(
            f"--tmp {path} has {len(str(path))} characters; at most {MOST_CHARACTERS} are allowed, because "
            "Ray puts sockets there, whose paths must be short. A link in / or /mnt is short"
        )
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--tmp {path} cannot be made: {error.strerror}") from None
    os.environ["TMPDIR"] = str(path)
    # Python looks at the variable once, and keeps what it found.
    tempfile.tempdir = None


def _when_given(context: typer.Context, folder: Path | None) -> Path | None:
    # A command line that is only completed, or sent to a cluster, is parsed but not run.
    if folder is not None and not context.resilient_parsing:
        reporting_errors(use_folder)(folder)
    return folder


Tmp = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        callback=_when_given,
        help="Folder for temporary files, including those of Ray; default: $TMPDIR, then /tmp.",
    ),
]
