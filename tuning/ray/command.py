"""One command that runs in a cluster: what Ray's client sends there.

The server of Ray's client imports this module in one of its threads. So it imports no torch, whose libraries
have failed to load there ("Cannot load libtorch_cpu.so"), and the server died.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from queue import Queue
from typing import IO, Literal

import ray

# Ray's workers block SIGINT, a node started in the background ignores it, and child processes inherit both.
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT]); "
    "from contrasweep.tuning.cli import main; main()"
)
Stream = Literal["stdout", "stderr"]


class RunningCommand:
    """An actor in the cluster that starts one command, collects its output and can interrupt it."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        address = ray.get_runtime_context().gcs_address
        self.said: Queue[tuple[Stream, bytes]] = Queue()
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments, "--address", address],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
        )
        assert self.process.stdout is not None, "a pipe"
        assert self.process.stderr is not None, "a pipe"
        self.listeners = [
            threading.Thread(target=self._listen, args=("stdout", self.process.stdout)),
            threading.Thread(target=self._listen, args=("stderr", self.process.stderr)),
        ]
        for listener in self.listeners:
            listener.start()
        threading.Thread(target=self._end).start()

    def read(self) -> tuple[Stream, bytes] | int:
        """Return the next piece of output, or the exit code after the last piece."""
        stream, text = self.said.get()
        return (stream, text) if text else self.process.wait()

    def interrupt(self) -> None:
        """Interrupt the command, as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)

    def _listen(self, stream: Stream, pipe: IO[bytes]) -> None:
        while text := os.read(pipe.fileno(), 65536):
            self.said.put((stream, text))

    def _end(self) -> None:
        for listener in self.listeners:
            listener.join()
        self.said.put(("stdout", b""))
