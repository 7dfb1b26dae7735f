"""Settings of every test process: one thread, Ray's workers at full priority, and bytecode is kept.

The tests run in as many processes as there are cores. Further threads would wait for each other and keep the
cores busy meanwhile: on two cores they made a training step several times slower. Ray gives its workers the
lowest priority: beside other tests they would hardly run. The tests start hundreds of Python processes. Where
Python may not keep bytecode (container images often say so), each of them would compile torch and Ray anew.
"""

import gc
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from typer import testing

from tests.search_path import search_path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("RAY_worker_niceness", "0")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# For `sitecustomize`, which every Python that a test starts imports.
os.environ["PYTHONPATH"] = search_path(*filter(None, [os.environ.get("PYTHONPATH")]))

# Typer would build the whole command line anew for every command that a test runs: a thousand times 17 ms.
testing._get_command = cache(testing._get_command)

WAITING = "tests/ray/"
"""Files whose tests often wait for processes of Ray to start and to end."""

# One process runs all tests of a file. These files and folders begin, in this order.
LONGEST = (
    "ray/test_worker_groups.py",
    "ray/test_sweep.py",
    "ray/test_dead_ray.py",
    "ray/test_client.py",
    "ray/test_sweep_faults.py",
    "ray/test_cluster.py",
    "ray",
    "training/test_contract.py",
    "training/test_ranks.py",
    "export",
    "plugin",
    "fuzz",
    "training",
    "sensitivity",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--fuzz N`."""
    parser.addoption("--fuzz", type=int, default=1, help="tests/fuzz: N times as many cases")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Let one process import what tests need while the others wait, until there is bytecode of it all.

    Otherwise each of them would compile the same 6,000 files at the same time. Where every process has a core
    of its own, that takes no longer.

    What is collected stays until the end, so the garbage collector need not look at it again and again: it
    would take a fifth of the collection's time.
    """
    gc.disable()
    try:
        return (yield from _after_bytecode(session))
    finally:
        gc.freeze()
        gc.enable()


def pytest_sessionfinish() -> None:
    """Let Python free what it kept: some libraries complain about what is left when a process ends."""
    gc.unfreeze()


def _after_bytecode(session: pytest.Session) -> Iterator[None]:
    cores, processes = os.cpu_count() or 1, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    cache = getattr(session.config, "cache", None)  # `-p no:cacheprovider` leaves it out
    if processes <= cores or cache is None:
        return (yield)
    folder = cache.mkdir("compiled")
    compiled = folder / sys.implementation.cache_tag
    with FileLock(folder / "lock"):
        if not compiled.exists():
            found = yield
            compiled.touch()
            return found
    return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest: the short files fill the processes evenly at the end."""
    folder = Path(__file__).parent

    @cache
    def place(path: Path) -> int:
        over = {path, *path.parents}
        return next((place for place, name in enumerate(LONGEST) if folder / name in over), len(LONGEST))

    items.sort(key=lambda item: place(item.path))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let every other process begin with the files that wait, so that the rest always use the cores."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Mixed(LoadFileScheduling):
        def _assign_work_unit(self, node: Any) -> None:
            waits = self.nodes.index(node) % 2 == 0
            fitting = (file for file in self.workqueue if file.startswith(WAITING) == waits)
            self.workqueue.move_to_end(next(fitting, next(iter(self.workqueue))), last=False)
            super()._assign_work_unit(node)

    return Mixed(config, log)
