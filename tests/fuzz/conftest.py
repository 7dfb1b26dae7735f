"""How many cases: a minute of them by default; `pytest tests/fuzz --fuzz 20` tries twenty times as many."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def times(request: pytest.FixtureRequest) -> int:
    """The factor on the number of cases of each test."""
    return int(request.config.getoption("--fuzz"))


@pytest.fixture(autouse=True)
def _no_captured_logs() -> Iterator[None]:
    """Log nothing: pytest-xdist cannot send what it captured where a file's name is not UTF-8."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
