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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--fuzz N`."""
    parser.addoption("--fuzz", type=int, default=1, help="tests/fuzz: N times as many cases")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files, those on Ray: the short ones fill the processes evenly at the end."""
    ray = Path(__file__).parent / "ray"
    items.sort(key=lambda item: ray not in item.path.parents)
