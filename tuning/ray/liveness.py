"""Whether Ray is alive: without its raylet, a driver would wait forever; without the GCS, Ray ends it.

Ray has a process on every node, the raylet, and one for the whole cluster, the GCS. Both listen on a port.
"""

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, Final

import ray

from contrasweep.tuning.errors import SweepStopped
from contrasweep.tuning.store.heartbeat import record_interruptions

POLL_SECONDS: Final = 1.0
SILENCE_SECONDS: Final = 10.0
"""How long a process of Ray may refuse connections before it counts as dead."""

GRACE_SECONDS: Final = 8.0
"""How long the main thread may take to leave what it does. Ray would end the process after a minute."""

# Ray ends a process that has not found its GCS for so many seconds. Who has a GCS that comes back, because it
# keeps its state in Redis, sets more.
RECONNECT_VARIABLE: Final = "RAY_gcs_rpc_server_reconnect_timeout_s"
RECONNECT_SECONDS: Final = 60.0

log = logging.getLogger(__name__)

Address = tuple[str, int]

_watched: list[Mapping[str, Address]] = []
"""The ports that this process watches now. Its Ray is one for all of it, as is the handler of a signal."""


class RayLost(SweepStopped):
    """Ray's own processes have died, or cannot be reached any more."""


@contextmanager
def stopping_without_ray() -> Iterator[None]:
    """Watch the Ray that this process is connected to, and leave the `with` block when it dies.

    Only a block in the main thread can be left so: Python interrupts no other thread.

    Raises:
        RayLost: the raylet of this node or the GCS refused connections for `SILENCE_SECONDS`, or longer where
            Ray was told to be more patient.
    """
    more = float(os.environ.get(RECONNECT_VARIABLE, RECONNECT_SECONDS)) - RECONNECT_SECONDS
    with stopping_when_silent(ports_of_ray(), SILENCE_SECONDS + max(0.0, more)):
        yield


def ports_of_ray() -> dict[str, Address]:
    """Return where the processes listen that this process needs, by what they are called in messages."""
    context: Any = ray.get_runtime_context()
    host, _, port = context.gcs_address.rpartition(":")
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    here = next(node for node in nodes if node["NodeID"] == context.get_node_id())
    return {
        "Ray's control process (GCS)": (host.strip("[]"), int(port)),
        "Ray's process on this machine (raylet)": (here["NodeManagerAddress"], here["NodeManagerPort"]),
    }


def what_is_silent() -> str | None:
    """Return which process of the watched Ray does not answer now, in words; None if all do.

    When a trial's worker is gone, this tells a fault of the trial from the death of Ray, which ends workers
    some seconds before its silence has lasted.
    """
    return next(filter(None, map(_silence_of, _watched)), None)


@contextmanager
def stopping_when_silent(
    ports: Mapping[str, Address], silence: float, *, poll: float = POLL_SECONDS
) -> Iterator[None]:
    """Leave the `with` block when nothing has answered at one of the ports for some seconds.

    Args:
        ports: what listens where.
        silence: seconds.
        poll: seconds between two looks.

    Raises:
        RayLost: names what does not answer.
    """
    if threading.current_thread() is not threading.main_thread():
        log.warning("Outside the main thread, a death of Ray is not noticed.")
        yield
        return
    watch = _Watch(ports, silence, poll)
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, partial(watch.interrupt, before))
    _watched.append(ports)
    watch.start()
    try:
        yield
    except KeyboardInterrupt:
        if watch.lost is None:
            raise
    except Exception as error:
        # Ray may complain, in words of its own, before the silence has lasted.
        watch.lost = watch.lost or _silence_of(ports)
        if watch.lost is None:
            raise
        raise RayLost(watch.lost) from error
    finally:
        watch.left.set()
        _watched.remove(ports)
        signal.signal(signal.SIGINT, before)
        watch.join()
    if watch.lost is not None:
        raise RayLost(watch.lost)


class _Watch(threading.Thread):
    """Looks at the ports until they are silent, or `left` is set."""

    def __init__(self, ports: Mapping[str, Address], silence: float, poll: float) -> None:
        super().__init__(name="ray-alive", daemon=True)
        self._ports, self._silence, self._poll = ports, silence, poll
        self.left = threading.Event()
        self.lost: str | None = None

    def run(self) -> None:
        """Interrupt the main thread once a port has been silent for too long."""
        heard = time.monotonic()
        while not self.left.wait(self._poll):
            found = _silence_of(self._ports)
            if found is None:
                heard = time.monotonic()
            elif time.monotonic() - heard >= self._silence:
                self.lost = found
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                if not self.left.wait(GRACE_SECONDS):
                    _end_process(found)
                return

    def interrupt(self, before: Any, number: int, frame: FrameType | None) -> None:
        """Handle SIGINT: it tells of Ray's death, or is a Ctrl-C, for the handler `before` this one."""
        if self.lost is not None:
            raise KeyboardInterrupt
        if callable(before):
            before(number, frame)


def _end_process(lost: str) -> None:
    """End this process: its main thread is inside a call of Ray that no signal interrupts."""
    record_interruptions()
    sys.stderr.write(
        f"Error: {lost}. What was finished is kept: a sweep goes on with --resume, final runs go on with "
        "the same command.\n"
    )
    sys.stderr.flush()
    os._exit(1)


def _silence_of(ports: Mapping[str, Address]) -> str | None:
    """Return what does not answer, in words; None if all do."""
    for name, (host, port) in ports.items():
        try:
            socket.create_connection((host, port), timeout=POLL_SECONDS).close()
        except OSError as error:
            return f"{name} has died or cannot be reached: nothing answers at {host}:{port} ({error})"
    return None
