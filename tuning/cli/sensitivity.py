"""`contrasweep sensitivity`: what the store says about the hyperparameters of studies."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tuning.cli.options import RESULTS, AsJson, Results, command_line
from tuning.cli.rendering import print_json, print_rows, say
from tuning.errors import InputError

if TYPE_CHECKING:
    from tuning.reports.page import Table

Studies = Annotated[
    list[str],
    typer.Argument(help="Names of studies; several are compared. `contrasweep studies` lists them."),
]


def sensitivity(
    studies: Studies,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The page; default: STUDY-sensitivity.html, of several sensitivity.html."
        ),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write every table there as a CSV file.")
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also draw four figures a study for papers there: PDF and PNG."),
    ] = None,
    results: Results = RESULTS,
    json: AsJson = False,
) -> None:
    """Say which hyperparameters matter, how, and how sure that is: one HTML page, from the store alone.

    Example: contrasweep sensitivity my-study -o sensitivity.html
    """
    page = output or Path(f"{studies[0]}-sensitivity.html" if len(studies) == 1 else "sensitivity.html")
    _check(studies, page, csv, figures)
    from tuning.analysis.sensitivity.analyse import analyse
    from tuning.reports.sensitivity_page import sensitivity_page
    from tuning.reports.sensitivity_paper import draw_paper_figures
    from tuning.reports.sensitivity_tables import as_records, sensitivity_tables, write_csv
    from tuning.store import ResultsStore

    store = ResultsStore(results)
    records = [store.study(name) for name in studies]
    found = analyse(store, studies)
    tables = sensitivity_tables(found)
    page.write_text(sensitivity_page(found, records, command_line()), encoding="utf-8")
    written = [page, *(write_csv(tables, csv) if csv is not None else [])]
    if figures is not None:
        written += [path for one in found.studies for path in draw_paper_figures(one, figures)]
    if json:
        print_json({"files": [str(path) for path in written], **as_records(tables)})
        return
    _print_summary(tables)
    for path in written:
        say(f"Wrote {path}")


def _check(studies: list[str], page: Path, csv: Path | None, figures: Path | None) -> None:
    if len(set(studies)) < len(studies):
        raise InputError(f"give each study once; given {', '.join(studies)}")
    if page.suffix not in (".html", ".htm"):
        raise InputError(f"-o {page}: the page ends in .html")
    if page.is_dir() or not page.absolute().parent.is_dir():
        raise InputError(f"-o {page}: give a file in a folder that exists")
    for option, folder in (("--csv", csv), ("--figures", figures)):
        if folder is not None and folder.exists() and not folder.is_dir():
            raise InputError(f"{option} {folder}: give a folder")
    if figures is not None:
        from tuning.analysis.figures import check_figure

        check_figure(figures / "any.pdf")


def _print_summary(tables: dict[str, "Table"]) -> None:
    """Print what fits a terminal: importance, gains, and what cannot be told."""
    for name in ("equal_budget", "differences", "importance", "tunability", "too_few"):
        if name in tables:
            table = tables[name]
            print_rows(table.title, [dict(zip(table.columns, row, strict=True)) for row in table.rows])
