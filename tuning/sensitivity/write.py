"""A sensitivity analysis as a page: one HTML file, written once or again and again while a sweep runs."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from contrasweep.tuning.files import write_whole
from contrasweep.tuning.reports.writing import check_page, while_running
from contrasweep.tuning.sensitivity.analyse import Sensitivity, analyse
from contrasweep.tuning.sensitivity.page import sensitivity_page
from contrasweep.tuning.store import ResultsStore


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
        store: the results.
        studies: their names.
        path: the file.
        command: that makes the page again.
        watch: seconds after which both are done again, as long as one of the studies runs; None: once. If
            the waiting is interrupted, the last page does not ask a browser to load it again.
        wait: waits for as many seconds as it is told.

    Returns:
        What the page shows; of several pages, the last.

    Raises:
        InputError: `path` is no page, or cannot be written; or `watch` is less than a second.
        StoreError: there is no such study.
    """
    check_page(path)
    for refresh in [None] if watch is None else while_running(store, studies, watch, wait):
        records = [store.study(name) for name in studies]
        found = analyse(store, studies)
        write_whole(path, sensitivity_page(found, records, command, refresh=refresh))
    return found
