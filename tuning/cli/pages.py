"""`contrasweep report` and `sensitivity`: pages about studies, and their rows for other tools."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contrasweep.tuning.cli.columns import Row
from contrasweep.tuning.cli.command_line import command_line
from contrasweep.tuning.cli.completion import complete_studies
from contrasweep.tuning.cli.options import AsJson, DataRoot, MapMethod, Results, store_with
from contrasweep.tuning.cli.rendering import print_json, print_rows, remark, say, tell, warn
from contrasweep.tuning.errors import InputError, refuse_repeats
from contrasweep.tuning.files import check_folder, check_page
from contrasweep.tuning.limits import check_watch
from contrasweep.tuning.results.commands import RESULTS

if TYPE_CHECKING:
    from contrasweep.tuning.reports.page import Section
    from contrasweep.tuning.store import ResultsStore

Studies = Annotated[
    list[str],
    typer.Argument(
        help="Names of studies; several are compared. `contrasweep studies` lists them.",
        autocompletion=complete_studies,
    ),
]
Watch = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="Rewrite the page every so many seconds until the sweep has ended."),
]

SUMMARY = ("equal_budget", "differences", "effects", "tunability")
"""The tables that fit a terminal: effects and gains."""


def report(
    studies: Studies,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Output file; default: STUDY.html, or report.html for several studies."
        ),
    ] = None,
    watch: Watch = None,
    rows: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also write all trials and epochs there, as CSV and Parquet."),
    ] = None,
    map_: Annotated[
        bool,
        typer.Option("--map", help="Also draw a map of held-out images by the features of the encoder."),
    ] = False,
    map_method: MapMethod = None,
    data_root: DataRoot = None,
    results: Results = RESULTS,
    json: AsJson = False,
) -> None:
    """Write the results of studies into one HTML page that opens offline, also while a sweep runs.

    Example: contrasweep report my-study -o my-study.html

    Example: contrasweep report my-study --map
    """
    from contrasweep.tuning.transfer.request import map_method_of

    check_watch(watch)
    page = _page_of(output, studies, ".html", several="report.html")
    method = map_method_of(map_method, map_asked=map_)
    if map_ and watch is not None:
        raise InputError("--map given with --watch; allowed: without it, once the sweep has ended")
    if rows is not None:
        check_folder(rows, "--rows")
    store = store_with(studies, results)
    remark(f"Reading {', '.join(studies)}, and drawing the page ...")
    from contrasweep.tuning.reports.report import watch_report, write_report
    from contrasweep.tuning.reports.rows import write_rows

    maps = _maps(store, studies, method, data_root) if map_ else {}
    if watch is None:
        write_report(store, studies, page, maps=maps)
    else:
        _say_watching(page, watch, json)
        watch_report(store, studies, page, watch, time.sleep)
    written = [] if rows is None else [file for one in studies for file in write_rows(store, one, rows)]
    if json:
        mapped = [study for study, section in maps.items() if section.maps]
        print_json({"page": str(page), "rows": [str(file) for file in written], "maps": mapped})
        return
    say(f"Wrote {page} ({page.stat().st_size / 1e6:.1f} MB)")
    if written:
        say(f"Rows: {', '.join(file.name for file in written)} in {rows}")


def sensitivity(
    studies: Studies,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Output file; default: STUDY-sensitivity.html, or sensitivity.html for several studies.",
        ),
    ] = None,
    watch: Watch = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write every table there, as CSV.")
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also draw the figures of each study there, as PDF and PNG."),
    ] = None,
    results: Results = RESULTS,
    json: AsJson = False,
) -> None:
    """Estimate which hyperparameters matter, and how certain that is, from stored trials: one HTML page.

    Example: contrasweep sensitivity my-study -o sensitivity.html
    """
    check_watch(watch)
    page = _page_of(output, studies, "-sensitivity.html", several="sensitivity.html")
    if csv is not None:
        check_folder(csv, "--csv")
    if figures is not None:
        check_folder(figures, "--figures")
        from contrasweep.tuning.reports.matplotlib_figures import check_figure

        check_figure(figures / "any.pdf")
    store = store_with(studies, results)
    remark(f"Analysing the trials of {', '.join(studies)} ...")
    from contrasweep.tuning.sensitivity.page import write_sensitivity
    from contrasweep.tuning.sensitivity.paper import draw_paper_figures
    from contrasweep.tuning.sensitivity.sections.summary import summary
    from contrasweep.tuning.sensitivity.tables import (
        TOO_FEW,
        as_records,
        sensitivity_tables,
        too_few,
        write_csv,
    )

    if watch is not None:
        _say_watching(page, watch, json)
    found = write_sensitivity(store, studies, page, command_line(), watch=watch)
    tables = sensitivity_tables(found)
    written = [page, *(write_csv(tables, csv) if csv is not None else [])]
    if figures is not None:
        drawn = [path for one in found.studies for path in draw_paper_figures(one, figures)]
        if not drawn:
            warn(f"--figures {figures}: no figure was drawn, because each needs more trials.")
        written += drawn
    if json:
        print_json({"files": [str(path) for path in written], **as_records(tables)})
        return
    for one in found.studies:
        tell(f"{one.observations.study}: {' '.join(summary(one))}")
        say("")
    for table in (tables[name] for name in SUMMARY if name in tables):
        print_rows(table.title, [dict(zip(table.columns, row, strict=True)) for row in table.rows])
    lacking = [
        Row({"study": study, "analysis": name}, {"there are": lack.there_are, "needed": lack.need})
        for study, name, lack in too_few(found)
    ]
    if lacking:
        print_rows(TOO_FEW, lacking)
    for path in written:
        say(f"Wrote {path}")


def _maps(
    store: "ResultsStore", studies: list[str], method: str, data_root: Path | None
) -> "dict[str, Section]":
    """Return the sections with the maps of studies; say of each study without one why that is."""
    remark("Loading torch, and computing features ...")
    from contrasweep.tuning.transfer.study_map import feature_maps

    maps = feature_maps(store, studies, method=method, data_root=data_root)
    for study, section in maps.items():
        if not section.maps:
            warn(f"{study}: {section.text}")
    return maps


def _page_of(output: Path | None, studies: list[str], ending: str, several: str) -> Path:
    """Return the file of the page: `output`, by default STUDY with `ending`, or `several` for many studies.

    Raises:
        InputError: a study is given twice, or the page cannot be written there.
    """
    refuse_repeats("study", studies)
    page = output or Path(f"{studies[0]}{ending}" if len(studies) == 1 else several)
    check_page(page)
    return page


def _say_watching(page: Path, seconds: float, as_json: bool) -> None:
    if not as_json:
        say(f"Writing {page} every {seconds:g} s until the sweep has ended; Ctrl-C stops.")
