"""What the trials of a study ran on, in words."""

from typing import Final

import pyarrow as pa

_COLUMNS: Final = ["host", "device", "cpus", "gpus"]
_NAMED: Final = 8


def hardware_of(trials: pa.Table) -> str:
    """Return hosts and devices with what a trial had of them, the first eight; empty where no trial says it.

    Args:
        trials: rows as `ResultsStore.trials` gives them.
    """
    found = [
        f"{row['host']} ({row['device']}, {row['cpus']:g} cores and {row['gpus']:g} GPUs a trial)"
        for row in trials.select(_COLUMNS).drop_null().group_by(_COLUMNS).aggregate([]).to_pylist()
    ]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(found[:_NAMED]) + more
