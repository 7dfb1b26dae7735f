"""Merge the files of a study whose runs are done: what comes of them does not hang on it."""

import logging

from contrasweep.tuning.results.commands import compact_command
from contrasweep.tuning.store import Location, StoreUnavailable, compact

log = logging.getLogger(__name__)


def merge_rows(location: Location, study: str) -> None:
    """Merge the many files of a study for its driver; where that fails, they stay as they are."""
    try:
        compact(location, study, by_driver=True)
    except StoreUnavailable as error:
        merge = compact_command(study, location.uri)
        log.warning("The results are whole, but in many files (`%s` merges them): %s", merge, error)
