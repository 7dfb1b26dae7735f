"""The page about the stability of claims, as HTML or as Markdown with a picture beside it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from contrasweep.names import with_capital
from contrasweep.tuning.files import check_file, write_whole
from contrasweep.tuning.reports.matplotlib_figures import check_figure
from contrasweep.tuning.reports.page import Section, Table, render_page
from contrasweep.tuning.stability.analysis import Stability
from contrasweep.tuning.stability.figure import claims_figure, draw_claims
from contrasweep.tuning.stability.table import (
    CLAIMS,
    DEVIATIONS,
    INTERVALS,
    ON_OTHER_SEEDS,
    RANKING,
    SCORES,
    claim_rows,
    interval_rows,
    other_seed_rows,
    ranking_rows,
    score_rows,
    sentences,
    variance_rows,
    warnings_of,
)
from contrasweep.tuning.tables.verdict_text import pipes

PAGES: Final = (".html", ".htm")
MARKDOWN: Final = ".md"
Rows = Sequence[Mapping[str, str]]


def check_output(path: Path) -> None:
    """Raise InputError unless the page can be written, and with a Markdown page its figure."""
    check_file(path, "-o")
    if path.suffix == MARKDOWN:
        check_figure(_picture(path), "-o")


def write_page(found: Stability, path: Path, command: str) -> list[Path]:
    """Write the page, and return the files that were written.

    Args:
        found: the analysis.
        path: the page; its ending says in which form.
        command: the command that makes the page again.
    """
    if path.suffix in PAGES:
        write_whole(path, _html(found, command))
        return [path]
    draw_claims(found, _picture(path))
    write_whole(path, _markdown(found, path, command))
    return [path, _picture(path)]


def _picture(path: Path) -> Path:
    return path.with_suffix(".png")


def _tables(found: Stability) -> list[tuple[str, Rows]]:
    """Return the tables, each with its title; those that have nothing to say are left out."""
    tables = [
        (CLAIMS, claim_rows(found)),
        (INTERVALS, interval_rows(found)),
        (ON_OTHER_SEEDS, other_seed_rows(found)),
        (SCORES, score_rows(found)),
        (DEVIATIONS, variance_rows(found)),
        (RANKING, ranking_rows(found)),
    ]
    return [(title, rows) for title, rows in tables if rows]


def _warnings(found: Stability) -> list[str]:
    return [f"{with_capital(line)}." for line in warnings_of(found)]


def _title(found: Stability) -> str:
    return f"Stability of {len(found.claims)} claims on {found.found[0].study.dataset}"


def _html(found: Stability, command: str) -> str:
    tables = _tables(found)
    about_claims = [Table.of(title, rows) for title, rows in tables if title in (CLAIMS, INTERVALS)]
    others = [(title, rows) for title, rows in tables if title not in (CLAIMS, INTERVALS)]
    sections = [
        Section(
            "Claims",
            "\n\n".join([*sentences(found), *_warnings(found)]),
            [claims_figure(found)],
            about_claims,
        ),
        *(Section(title, "", tables=[Table.of("", rows)]) for title, rows in others),
    ]
    studies = ", ".join(one.study.study for one in found.found)
    footer = [f"Studies: {studies}.", "How it is computed: docs/stability.md.", f"Made by: {command}"]
    return render_page(_title(found), studies, sections, footer)


def _markdown(found: Stability, path: Path, command: str) -> str:
    parts = [
        f"# {_title(found)}",
        *sentences(found),
        *_warnings(found),
        f"![Claims by number of trials, coloured by the probability that they hold]({_picture(path).name})",
    ]
    for title, rows in _tables(found):
        parts += [f"**{title}**", pipes(list(rows[0]), [list(row.values()) for row in rows])]
    return "\n\n".join([*parts, f"Made by: `{command}`"]) + "\n"
