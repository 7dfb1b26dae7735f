"""What decodes images beside the training: threads with one core each, or processes.

A thread that decodes takes the interpreter's lock about 25 times an image. So threads wait for each other and
for the training. A thread that waits for a process takes it a few times for 16 images. Processes are started
when they are first needed, and kept for the next batches. They hold nothing: any of them performs any task.
"""

import atexit
import logging
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from contrasweep.data.decoding_tasks import DONE, DecodingTask, SharedPixels, perform

log = logging.getLogger(__name__)

MOST_LOST = 3
"""How many processes may end before their time until no new ones are started."""

_MODULE = "contrasweep.data.decoding_process"
_SECONDS_TO_END = 10


def decoding_threads(count: int) -> ThreadPoolExecutor:
    """Return ``count`` threads; what torch computes in one of them is not divided among more threads."""
    return ThreadPoolExecutor(count, thread_name_prefix="decode", initializer=_use_one_core)


def _use_one_core() -> None:
    # torch sets a thread's number when it first needs it, which would undo ours.
    torch.get_num_threads()
    threadpool_limits(1, user_api="openmp")


class DecodingProcesses:
    """Processes that decode for the threads of this one, a process for each thread that asks at a time."""

    def __init__(self) -> None:
        # Threads add and remove at the same time; each such step of a list is one step of Python.
        self._running: list[_Process] = []
        self._idle: list[_Process] = []
        self._lost = 0

    def perform(self, task: DecodingTask, out: Tensor) -> None:
        """Perform a task as `decoding_tasks.perform` does: in a process, or here if there is none."""
        process = self._borrowed()
        # What a process refuses, this one may decode: it alone has the user's readers and settings of Pillow.
        if process is None or not self._performed(process, task, out):
            perform(task, out)

    def close(self) -> None:
        """End the processes."""
        self._idle.clear()
        while self._running:
            self._running.pop().end()

    def forget(self) -> None:
        """Leave the processes to the process that this one was forked from, and do not keep them alive."""
        for process in self._running:
            process.channel.close()
        self._running, self._idle = [], []

    def _performed(self, process: "_Process", task: DecodingTask, out: Tensor) -> bool:
        """Have a borrowed process perform a task, give it back unless it ended; return whether it did it."""
        try:
            done = process.performs(task)
        except (EOFError, OSError):
            self._note_end(process)
            return False
        if done:
            np.copyto(out.numpy(), process.pixels.view(*out.shape))
        self._idle.append(process)
        return done

    def _borrowed(self) -> "_Process | None":
        try:
            return self._idle.pop()
        except IndexError:
            return self._started() if self._lost < MOST_LOST else None

    def _started(self) -> "_Process | None":
        try:
            process = start_process()
        except OSError as error:
            # Several threads start processes at once; one of them says it.
            if self._lost < MOST_LOST:
                self._lost = MOST_LOST
                log.warning(
                    "no process that decodes images can be started (%s): threads of this process decode, "
                    "more slowly",
                    error,
                )
            return None
        self._running.append(process)
        return process

    def _note_end(self, process: "_Process") -> None:
        self._lost += 1
        self._running.remove(process)
        after = "a new process" if self._lost < MOST_LOST else f"none, after {MOST_LOST} such ends,"
        log.warning(
            "a process that decoded images was ended by %s; its images are decoded here, and %s is started",
            process.how_it_ended(),
            after,
        )


@cache
def shared_processes() -> DecodingProcesses:
    """Return the processes that decode for all of this process; they end with it."""
    processes = DecodingProcesses()
    atexit.register(processes.close)
    os.register_at_fork(after_in_child=processes.forget)
    return processes


@dataclass(frozen=True)
class _Process:
    """A process that decodes, the channel to it, and the memory in which it writes pixels."""

    process: subprocess.Popen[bytes]
    channel: Connection
    pixels: SharedPixels

    def performs(self, task: DecodingTask) -> bool:
        """Have a task performed; return whether it was, or an image was refused.

        Raises:
            EOFError, OSError: the process has ended.
        """
        # It stays in the folder in which it was started; this process may have gone to another since then.
        images = (image.absolute() if isinstance(image, Path) else image for image in task.images)
        self.channel.send(replace(task, images=tuple(images)))
        return self.done()

    def done(self) -> bool:
        """Wait for the answer; return whether it is `DONE`.

        Raises:
            EOFError, OSError: the process has ended.
        """
        answer = os.read(self.channel.fileno(), 1)
        if not answer:
            raise EOFError
        return answer == DONE

    def end(self) -> None:
        """End the process if it has not ended."""
        self.channel.close()
        self.pixels.close()
        self.process.kill()
        self.process.wait()

    def how_it_ended(self) -> str:
        """Return what ended the process, which has closed its channel: a signal, or itself with a status."""
        # Between the two, Python may take a second to end.
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_SECONDS_TO_END)
        self.end()
        code = self.process.returncode
        if code >= 0:
            return f"itself, with status {code}"
        # Not every signal has a name: most real-time ones have none.
        named = {one.value: one.name for one in signal.Signals}
        return f"signal {named.get(-code, -code)}"


def start_process() -> _Process:
    """Start a process and wait until it can decode, for some seconds: it imports torch.

    Raises:
        OSError: it cannot be started, or ends while it starts.
    """
    if not hasattr(os, "memfd_create"):
        raise OSError(f"{sys.platform} has no memory that processes can share without leaving it behind")
    pixels = os.fdopen(os.memfd_create("contrasweep-pixels"), "r+b")
    ours, theirs = Pipe()
    with theirs:
        files = (theirs.fileno(), pixels.fileno())
        # No "from the current folder first" (-P): Python looks for modules where this process does.
        command = [sys.executable, "-P", "-m", _MODULE, *map(str, files)]
        paths = os.pathsep.join(str(path) or os.getcwd() for path in sys.path)
        process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=files,
            # Ctrl-C in a terminal is for this process alone, whose end ends the other.
            start_new_session=True,
        )
    started = _Process(process, ours, SharedPixels(pixels))
    try:
        started.done()
    except (EOFError, OSError):
        raise OSError(f"{_MODULE} was ended by {started.how_it_ended()}") from None
    return started
