"""How long the ranks of a run wait for each other.

If a collective takes longer than `COLLECTIVE`, a rank hangs. Work that may take longer, and that a rank does
alone (probes, k-means, loading data), is awaited with `wait_for_ranks`, which is not a collective.
"""

import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final

import torch.distributed as dist

from contrasweep.losses.gather import RanksLost, collective

COLLECTIVE: Final = timedelta(minutes=10)
"""How long a rank waits for the others in a collective: all do the same between two collectives."""

ALONE: Final = timedelta(hours=12)
"""How long ranks wait for what one of them does alone."""

_SHORTEST, _LONGEST = 0.001, 0.1
"""Seconds between two looks at the store: they double from the first to the last."""

_TURNS: Final = "contrasweep/turns"


def wait_for_ranks(
    rank: int,
    awaited: Iterable[int],
    limit: timedelta = ALONE,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until the `awaited` ranks have called this function as often as this `rank` has.

    The store of the default process group counts the calls, so all ranks must call it, in the same order.

    Raises:
        RanksLost: a rank does not come within `limit`, or the store is gone with the rank that held it.
    """
    with collective():
        store = dist.distributed_c10d._get_default_store()
        turn = store.add(f"{_TURNS}/{rank}", 1)
    ends, pause, missing = clock() + limit.total_seconds(), _SHORTEST, sorted(awaited)
    while True:
        with collective():
            missing = [one for one in missing if store.add(f"{_TURNS}/{one}", 0) < turn]
        if not missing:
            return
        if clock() > ends:
            late = ", ".join(map(str, missing))
            raise RanksLost(f"worker {rank} has waited {limit} for worker {late}, which hangs")
        sleep(pause)
        pause = min(2 * pause, _LONGEST)
