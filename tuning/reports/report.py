"""A report on studies: one HTML file, written once or again and again while a sweep runs."""

import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tuning.errors import InputError
from tuning.reports.comparison import comparison_section
from tuning.reports.page import Section, render_page
from tuning.reports.reproduce import footer_lines
from tuning.reports.sections import state_line, study_sections
from tuning.reports.study import StudyData, read_study
from tuning.store import ResultsStore

SHORTEST_WATCH = 1.0


def report(store: ResultsStore, studies: Sequence[str], *, refresh: float | None = None) -> str:
    """Return the report on one study, or on several with their comparison first, as a self-contained page.

    Args:
        store: the results.
        studies: their names.
        refresh: seconds after which a browser loads the page again.

    Raises:
        InputError: no study, one given twice, or one that holds final runs.
        StoreError: there is no such study.
    """
    if not studies or len(set(studies)) < len(studies):
        raise InputError(f"give each study once; given {', '.join(studies) or 'none'}")
    return _page([read_study(store, name) for name in studies], refresh)


def write_report(store: ResultsStore, studies: Sequence[str], path: Path) -> None:
    """Write the report into `path`, whole or not at all.

    Raises:
        InputError: as `report`; or `path` is a folder, or its folder is missing.
    """
    check_output(path)
    _replace(path, report(store, studies))


def watch_report(
    store: ResultsStore,
    studies: Sequence[str],
    path: Path,
    seconds: float,
    wait: Callable[[float], object],
) -> int:
    """Write the report every so many seconds while one of the studies runs, and once more when none does.

    Only a page that will be rewritten asks the browser to load it again. If the waiting is interrupted, the
    last page stays, without that request.

    Args:
        store: the results.
        studies: their names.
        path: the file.
        seconds: from one writing to the next.
        wait: waits for as many seconds as it is told.

    Returns:
        How often the file was written.

    Raises:
        InputError: as `write_report`; or less than a second.
    """
    if not seconds >= SHORTEST_WATCH:
        raise InputError(f"--watch takes at least {SHORTEST_WATCH:g} second, given {seconds:g}")
    check_output(path)
    written = 0
    while True:
        # The state first: what ends after it was read is on the next page.
        running = any(summary.state == "running" for summary in store.studies() if summary.name in studies)
        _replace(path, report(store, studies, refresh=seconds if running else None))
        written += 1
        if not running:
            return written
        try:
            wait(seconds)
        except KeyboardInterrupt:
            _replace(path, report(store, studies))
            raise


def check_output(path: Path) -> None:
    """Raise InputError unless a report can be written into `path`."""
    if path.suffix not in (".html", ".htm"):
        raise InputError(f"-o {path}: a report ends in .html")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise InputError(f"-o {path}: give a file in a folder that exists")


def _page(studies: Sequence[StudyData], refresh: float | None) -> str:
    first = studies[0]
    written = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    footer = footer_lines(studies, written)
    if len(studies) == 1:
        record = first.record
        title = f"{record.method} on {record.dataset}: {first.name}"
        return render_page(title, state_line(first), study_sections(first), footer, refresh=refresh)
    sections = [comparison_section(studies)]
    for data in studies:
        sections += [_named(section, data.name) for section in study_sections(data)]
    names = ", ".join(data.name for data in studies)
    return render_page(f"{len(studies)} studies compared", names, sections, footer, refresh=refresh)


def _named(section: Section, study: str) -> Section:
    return replace(section, title=f"{study}: {section.title.lower()}")


def _replace(path: Path, content: str) -> None:
    """A browser that loads the file meanwhile gets the old page or the new one, never half of one."""
    unfinished = path.with_name(f"_{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        unfinished.write_text(content, encoding="utf-8")
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
