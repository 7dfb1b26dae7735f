"""Settings of every test process: one thread, Ray's workers at full priority, and bytecode is kept.

The tests run in as many processes as there are cores. Further threads would wait for each other and keep the
cores busy meanwhile: on two cores they made a training step several times slower. Ray gives its workers the
lowest priority: beside other tests they would hardly run. The tests start hundreds of Python processes. Where
Python may not keep bytecode (container images often say so), each of them would compile torch and Ray anew.
"""

import os
import sys
from pathlib import Path

import pytest

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("RAY_worker_niceness", "0")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# One process runs all tests of a file. These files and folders begin, in this order; those on Ray wait a lot.
LONGEST = (
    "ray/test_worker_groups.py",
    "ray/test_sweep.py",
    "ray",
    "training/test_contract.py",
    "training/test_ranks.py",
    "plugin",
    "fuzz",
    "training",
    "sensitivity",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--fuzz N`."""
    parser.addoption("--fuzz", type=int, default=1, help="tests/fuzz: N times as many cases")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest: the short files fill the processes evenly at the end."""
    folder = Path(__file__).parent

    def place(item: pytest.Item) -> int:
        over = {item.path, *item.path.parents}
        return next((place for place, name in enumerate(LONGEST) if folder / name in over), len(LONGEST))

    items.sort(key=place)
