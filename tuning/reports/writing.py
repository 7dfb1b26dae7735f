"""Writing a page into a file, whole or not at all: once, or again and again while a sweep runs."""

import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tuning.errors import InputError
from tuning.store import ResultsStore

SHORTEST_WATCH = 1.0


def check_output(path: Path) -> None:
    """Raise InputError unless a page can be written into `path`."""
    if path.suffix not in (".html", ".htm"):
        raise InputError(f"-o {path}: a page ends in .html")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise InputError(f"-o {path}: give a file in a folder that exists")


def write_page(path: Path, content: str) -> None:
    """Write a page so that a browser that loads it meanwhile gets the old one or the new one, whole."""
    unfinished = path.with_name(f"_{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        unfinished.write_text(content, encoding="utf-8")
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def while_running(
    store: ResultsStore, studies: Sequence[str], seconds: float, wait: Callable[[float], object]
) -> Iterator[float | None]:
    """Yield whenever a page is to be written: as long as one of the studies runs, and once more afterwards.

    What is yielded is the time after which a browser is to load the page again: `seconds`, and None for the
    last page. If the waiting is interrupted, one last page is due before the interruption goes on.

    Args:
        store: the results.
        studies: their names.
        seconds: from one writing to the next.
        wait: waits for as many seconds as it is told.

    Raises:
        InputError: less than a second.
    """
    if not seconds >= SHORTEST_WATCH:
        raise InputError(f"--watch takes at least {SHORTEST_WATCH:g} second, given {seconds:g}")
    # The state first: what ends after it was read is on the next page.
    while any(store.state(study) == "running" for study in studies):
        yield seconds
        try:
            wait(seconds)
        except KeyboardInterrupt:
            yield None
            raise
    yield None
