"""`contrasweep report`: the results of studies as an HTML page, and as rows for other tools."""

import time
from pathlib import Path
from typing import Annotated

import typer

from contrasweep.tuning.cli.options import RESULTS, AsJson, Results
from contrasweep.tuning.cli.pages import Studies, Watch, page_of, watching
from contrasweep.tuning.cli.rendering import print_json, say
from contrasweep.tuning.files import check_folder


def report(
    studies: Studies,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The page; default: STUDY.html; of several: report.html."),
    ] = None,
    watch: Watch = None,
    rows: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also write all trials and epochs there, as CSV and Parquet."),
    ] = None,
    results: Results = RESULTS,
    json: AsJson = False,
) -> None:
    """Write the results of studies into one HTML page that opens offline, also while a sweep runs.

    Example: contrasweep report my-study -o my-study.html
    """
    page = page_of(output, studies, ".html", several="report.html")
    if rows is not None:
        check_folder(rows, "--rows")
    from contrasweep.tuning.reports.report import watch_report, write_report
    from contrasweep.tuning.reports.rows import write_rows
    from contrasweep.tuning.store import ResultsStore

    store = ResultsStore(results)
    if watch is None:
        write_report(store, studies, page)
    else:
        if not json:
            say(watching(page, watch))
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
