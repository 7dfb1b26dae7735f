"""Arguments, and their checks, of the commands that write a page about studies."""

from pathlib import Path
from typing import Annotated

import typer

from contrasweep.tuning.errors import InputError

Studies = Annotated[
    list[str],
    typer.Argument(help="Names of studies; several are compared. `contrasweep studies` lists them."),
]
Watch = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="Rewrite the page this often until the sweep has ended."),
]


def page_of(output: Path | None, studies: list[str], ending: str, several: str) -> Path:
    """Return the file of the page: `output`, by default STUDY with `ending`, or `several` for many studies.

    Raises:
        InputError: a study is given twice, or the page cannot be written there.
    """
    from contrasweep.tuning.reports.page import check_page

    if len(set(studies)) < len(studies):
        raise InputError(f"give each study once; given {', '.join(studies)}")
    page = output or Path(f"{studies[0]}{ending}" if len(studies) == 1 else several)
    check_page(page)
    return page


def watching(page: Path, seconds: float) -> str:
    """Return the message that the page is rewritten until the sweep ends."""
    return f"Writing {page} every {seconds:g} s until the sweep has ended; Ctrl-C stops."
