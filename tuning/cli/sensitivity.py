"""`contrasweep sensitivity`: the effect of the hyperparameters of studies, from the store."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contrasweep.tuning.cli.options import RESULTS, AsJson, Results, command_line
from contrasweep.tuning.cli.pages import Studies, Watch, page_of, watching
from contrasweep.tuning.cli.rendering import print_json, print_rows, say
from contrasweep.tuning.files import check_folder

if TYPE_CHECKING:
    from contrasweep.tuning.reports.page import Table


def sensitivity(
    studies: Studies,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The page; default: STUDY-sensitivity.html; of several: sensitivity.html.",
        ),
    ] = None,
    watch: Watch = None,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also write every table there, as CSV."),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Also draw four figures per study there, as PDF and PNG.",
        ),
    ] = None,
    results: Results = RESULTS,
    json: AsJson = False,
) -> None:
    """Say which hyperparameters matter, how, and how sure that is: one HTML page, from the store alone.

    Example: contrasweep sensitivity my-study -o sensitivity.html
    """
    page = page_of(output, studies, "-sensitivity.html", several="sensitivity.html")
    if csv is not None:
        check_folder(csv, "--csv")
    if figures is not None:
        check_folder(figures, "--figures")
        from contrasweep.tuning.reports.matplotlib_figures import check_figure

        check_figure(figures / "any.pdf")
    from contrasweep.tuning.sensitivity.page import write_sensitivity
    from contrasweep.tuning.sensitivity.paper import draw_paper_figures
    from contrasweep.tuning.sensitivity.tables import as_records, sensitivity_tables, write_csv
    from contrasweep.tuning.store import ResultsStore

    if watch is not None and not json:
        say(watching(page, watch))
    found = write_sensitivity(ResultsStore(results), studies, page, command_line(), watch=watch)
    tables = sensitivity_tables(found)
    written = [page, *(write_csv(tables, csv) if csv is not None else [])]
    if figures is not None:
        written += [path for one in found.studies for path in draw_paper_figures(one, figures)]
    if json:
        print_json({"files": [str(path) for path in written], **as_records(tables)})
        return
    _print_summary(tables)
    for path in written:
        say(f"Wrote {path}")


def _print_summary(tables: dict[str, "Table"]) -> None:
    """Print the tables that fit a terminal: importance, gains, and the analyses that need more trials."""
    for name in ("equal_budget", "differences", "importance", "tunability", "too_few"):
        if name in tables:
            table = tables[name]
            print_rows(table.title, [dict(zip(table.columns, row, strict=True)) for row in table.rows])
