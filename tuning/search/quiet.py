"""Optuna without its remarks."""

from collections.abc import Iterator
from contextlib import contextmanager

import optuna


@contextmanager
def quiet_optuna(level: int = optuna.logging.WARNING) -> Iterator[None]:
    """Hold back what Optuna says below `level`: by default its line about each new study."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(before, level))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
