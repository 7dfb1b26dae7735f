"""The seconds that a part of a benchmark takes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print the processor seconds of the block, which other work hardly changes, and those by the clock."""
    cpu, wall = time.process_time(), time.perf_counter()
    yield
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    print(f"  {what}: {cpu:.2f} s of processor, {wall:.2f} s by the clock", flush=True)
