"""The sensitivity page: one HTML file, written once, or repeatedly while a sweep runs."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contrasweep.tuning.files import check_page, write_whole
from contrasweep.tuning.reports.page import Section, render_page, while_running
from contrasweep.tuning.sensitivity.analyse import Sensitivity, StudySensitivity, analyse
from contrasweep.tuning.sensitivity.sections import PARTS
from contrasweep.tuning.sensitivity.sections.part import Part
from contrasweep.tuning.sensitivity.sections.studies import comparison_sections, trials_section
from contrasweep.tuning.sensitivity.sections.summary import summary_section
from contrasweep.tuning.store import ResultsStore, StudyRecord

MOST_NAMED = 4


def write_sensitivity(
    store: ResultsStore,
    studies: Sequence[str],
    path: Path,
    command: str,
    *,
    watch: float | None = None,
    wait: Callable[[float], object] = time.sleep,
) -> Sensitivity:
    """Analyse studies and write the page about them into `path`, whole or not at all.

    Args:
        store, studies: the results, and the names of the studies.
        path: the file.
        command: the command that makes the page again.
        watch: repeat every so many seconds while one of the studies runs; None writes the page once. If the
            waiting is interrupted, the last page does not ask a browser to load it again.
        wait: waits for a number of seconds.

    Returns:
        The analysis that the last page shows.

    Raises:
        InputError: `path` does not end in .html or cannot be written, or `watch` is less than a second.
        StoreError: there is no such study.
    """
    check_page(path)
    for refresh in [None] if watch is None else while_running(store, studies, watch, wait):
        records = [store.study(name) for name in studies]
        found = analyse(store, studies)
        write_whole(path, sensitivity_page(found, records, command, refresh=refresh))
    return found


def sensitivity_page(
    found: Sensitivity,
    records: Sequence[StudyRecord],
    command: str,
    *,
    refresh: float | None = None,
    parts: Sequence[Part[Any]] = PARTS,
) -> str:
    """Return the page of an analysis as self-contained HTML.

    Args:
        found, records: the analysis, and the records of the same studies in the same order.
        command: the command that makes the page again.
        refresh: seconds after which a browser loads the page again; None for never.
        parts: the sections about each study, between what it comes to and its trials.
    """
    several = len(found.studies) > 1
    sections = list(comparison_sections(found)) if several else []
    for one in found.studies:
        sections += sensitivity_sections(one, several, parts)
    title = f"Sensitivity of {len(records)} studies" if several else f"Sensitivity: {records[0].name}"
    return render_page(title, _subtitle(found), sections, _footer(found, records, command), refresh=refresh)


def sensitivity_sections(
    one: StudySensitivity, several: bool = False, parts: Sequence[Part[Any]] = PARTS
) -> Iterator[Section]:
    """Yield the sections about one study; with several studies, their titles name the study."""
    told = [section for part in parts if (section := part.section(one)) is not None]
    lines = [line for part in parts if (line := part.line(one)) is not None]
    if lines:
        told.append(Section("Too few to tell", "\n".join(f"- {line}" for line in lines)))
    for section in (summary_section(one), *told, trials_section(one)):
        yield section.named(one.observations.study) if several else section


def _subtitle(found: Sensitivity) -> str:
    seen = {(one.observations.method, one.observations.dataset) for one in found.studies}
    if len(seen) <= MOST_NAMED:
        return "; ".join(f"{method} on {dataset}" for method, dataset in sorted(seen))
    return f"{len({method for method, _ in seen})} methods on {len({data for _, data in seen})} datasets"


def _footer(found: Sensitivity, records: Sequence[StudyRecord], command: str) -> list[str]:
    lines = []
    for one, record in zip(found.studies, records, strict=True):
        o = one.observations
        seeds = ", ".join(map(str, np.unique(o.replicates.seed))) or "none"
        versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
        lines.append(
            f"{record.name}: {len(o.trial)} trials, {o.count('completed')} completed, seeds {seeds}; "
            f"trials are compared by {o.metric} on the validation split, so the best is optimistic; "
            f"ran on {o.hardware or record.host}; {versions}; revision {record.git_revision or 'unknown'}."
        )
    return [
        *lines,
        "Intervals are 95 %. How each figure is computed: docs/sensitivity-statistics.md.",
        f"Made by: {command}",
    ]
