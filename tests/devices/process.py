"""Functions that run in a process of their own, which knows the stand-in device from its start."""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

import pytest
import torch

from tests.devices.standin import can_install, install

T = TypeVar("T")


class DeviceProcess:
    """A process with the device; call it with a function of a module and its arguments.

    It is forked from a server that has imported torch, so it starts in the time of a fork after the first.
    The test that makes one is skipped where torch cannot have the device.
    """

    def __init__(self, *needs: str) -> None:
        if not can_install():
            pytest.skip(f"torch {torch.__version__} takes no device that is made in Python")
        multiprocessing.set_forkserver_preload(["torch", *needs])
        context = multiprocessing.get_context("forkserver")
        self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_begin)

    def __call__(self, function: Callable[..., T], *args: Any) -> T:
        """Return what the function returns there, or raise what it raises."""
        return self._pool.submit(function, *args).result()

    def close(self) -> None:
        self._pool.shutdown()


def _begin() -> None:
    torch.set_num_threads(1)
    install()
