"""A report on studies: one HTML file, written once or again and again while a sweep runs."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

from contrasweep.tuning.errors import refuse_repeats
from contrasweep.tuning.files import check_page, write_whole
from contrasweep.tuning.reports.comparison import comparison_section
from contrasweep.tuning.reports.page import Section, render_page, while_running
from contrasweep.tuning.reports.sections import footer_lines, state_line, study_sections
from contrasweep.tuning.results.study import StudyData, read_study
from contrasweep.tuning.store import ResultsStore

Maps = Mapping[str, Section]
"""The section with the map of a study's features (`transfer.study_map`), by the name of the study."""

NO_MAPS: Maps = MappingProxyType({})


def report(
    store: ResultsStore, studies: Sequence[str], *, maps: Maps = NO_MAPS, refresh: float | None = None
) -> str:
    """Return the report on one study, or on several with their comparison first, as a self-contained page.

    A browser reloads the page after `refresh` seconds. Each study of `maps` has the section with its map.

    Raises:
        InputError: no study is given, one is given twice, or one holds final runs.
        StoreError: there is no such study.
    """
    refuse_repeats("study", studies)
    return _page([read_study(store, name) for name in studies], maps, refresh)


def write_report(store: ResultsStore, studies: Sequence[str], path: Path, *, maps: Maps = NO_MAPS) -> None:
    """Write the report into `path`, whole or not at all; `contrasweep.feature_maps` gives `maps`.

    Raises:
        InputError: as `report`; or `path` cannot be written or is not an .html file.
    """
    check_page(path)
    write_whole(path, report(store, studies, maps=maps))


def watch_report(
    store: ResultsStore,
    studies: Sequence[str],
    path: Path,
    seconds: float,
    wait: Callable[[float], object],
) -> int:
    """Write the report again and again while one of the studies runs, and once more when none runs.

    A browser reloads only a page that will be rewritten: the last page, also the one after an interruption
    (Ctrl-C), stands still. Between two writings, `wait` is called with `seconds`.

    Returns:
        The number of times that the file was written.

    Raises:
        InputError: as `write_report`; or `seconds` is below 1.
    """
    check_page(path)
    written = 0
    for refresh in while_running(store, studies, seconds, wait):
        write_whole(path, report(store, studies, refresh=refresh))
        written += 1
    return written


def _page(studies: Sequence[StudyData], maps: Maps, refresh: float | None) -> str:
    mapped = any(section.maps for section in maps.values())
    footer = footer_lines(studies, f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC", mapped=mapped)
    if len(studies) == 1:
        (data,) = studies
        title = f"{data.record.method} on {data.record.dataset}: {data.name}"
        return render_page(
            title, state_line(data), study_sections(data, maps.get(data.name)), footer, refresh=refresh
        )
    sections = [comparison_section(studies)]
    for data in studies:
        sections += [section.named(data.name) for section in study_sections(data, maps.get(data.name))]
    names = ", ".join(data.name for data in studies)
    return render_page(f"{len(studies)} studies compared", names, sections, footer, refresh=refresh)
