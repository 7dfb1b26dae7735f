"""When a page is written: once, or again and again while a sweep runs."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.files import check_file
from contrasweep.tuning.store import ResultsStore

SHORTEST_WATCH = 1.0


def check_page(path: Path) -> None:
    """Raise InputError unless a page can be written into `path`."""
    check_file(path, "-o", (".html", ".htm"))


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
