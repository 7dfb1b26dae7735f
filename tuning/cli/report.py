"""`contrasweep report`: what a study found, as a page for a browser and as rows for other tools."""

import time
from pathlib import Path
from typing import Annotated

import typer

from tuning.cli.options import RESULTS, AsJson, Results
from tuning.cli.rendering import print_json, say
from tuning.errors import InputError

Studies = Annotated[
    list[str],
    typer.Argument(help="Names of studies; several are compared. `contrasweep studies` lists them."),
]


def report(
    studies: Studies,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The page; default: STUDY.html, of several report.html."),
    ] = None,
    watch: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Rewrite the page this often until the sweep has ended."),
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also write all trials and epochs there, as CSV and Parquet."),
    ] = None,
    results: Results = RESULTS,
    json: AsJson = False,
) -> None:
    """Write what studies found into one HTML page that opens offline, also while a sweep runs.

    Example: contrasweep report my-study -o my-study.html
    """
    from tuning.reports.report import check_output, watch_report, write_report
    from tuning.reports.rows import write_rows
    from tuning.store import ResultsStore

    page = output or Path(f"{studies[0]}.html" if len(studies) == 1 else "report.html")
    check_output(page)
    if rows is not None and rows.exists() and not rows.is_dir():
        raise InputError(f"--rows {rows}: give a folder")
    store = ResultsStore(results)
    if watch is None:
        write_report(store, studies, page)
    else:
        if not json:
            say(f"Writing {page} every {watch:g} s until the sweep has ended; Ctrl-C stops.")
        watch_report(store, studies, page, watch, time.sleep)
    written = (
        [file for study in studies for file in write_rows(store, study, rows)] if rows is not None else []
    )
    if json:
        print_json({"page": str(page), "rows": [str(file) for file in written]})
        return
    say(f"Wrote {page} ({page.stat().st_size / 1e6:.1f} MB)")
    if written:
        say(f"Rows: {', '.join(file.name for file in written)} in {rows}")
