"""Run a whole command in a cluster from outside, through Ray's client (`ray://HOST:PORT`).

Tune's driver must be in the cluster. So the command runs there, with our code and the files that it names.
Its output and its exit code come back.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from queue import Queue
from typing import IO, Any, Literal

import ray
from ray.exceptions import RayError

from contrasweep.tuning.errors import SweepFailed
from contrasweep.tuning.ray.cluster import no_cluster, our_code, refuse_silence, start_ray

# Ray's workers block SIGINT, a node started in the background ignores it, and child processes inherit both.
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT]); "
    "from contrasweep.tuning.cli import main; main()"
)
Stream = Literal["stdout", "stderr"]
Show = Callable[[Stream, bytes], None]


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


def run_there(
    address: str, arguments: Sequence[str], files: Sequence[Path], environment: Mapping[str, str], show: Show
) -> int:
    """Run `contrasweep ARGUMENTS --address AUTO` in the cluster, and return its exit code.

    Args:
        address: `ray://HOST:PORT`; the default port of Ray's client server is 10001.
        arguments: the command without `--address`, in which `files` have the names that `name_there` gives.
        files: local files to send along.
        environment: variables that the command gets besides those of the cluster.
        show: called with each piece of output as it comes. A KeyboardInterrupt meanwhile interrupts the
            command in the cluster, and is not raised here.

    Raises:
        InputError: no cluster can be used at the address.
        SweepFailed: the connection to the cluster, or the node of the command, was lost.
    """
    refuse_silence(address)
    with tempfile.TemporaryDirectory(prefix="contrasweep-files-") as folder:
        for place, file in enumerate(files):
            there = Path(folder) / name_there(place, file)
            there.parent.mkdir(parents=True)
            shutil.copy(file, there)
        try:
            given = {"working_dir": folder, "py_modules": [str(our_code())]}
            # The cluster starts a server for each client, which may fail on a busy machine.
            start_ray(
                no_cluster(address), again=(ConnectionAbortedError,), address=address, runtime_env=given
            )
            actor: Any = ray.remote(num_cpus=0)(RunningCommand)
            # Two calls at once: one reads while the other interrupts.
            running = actor.options(max_concurrency=2).remote(list(arguments), dict(environment))
            return _follow(running, show)
        except (RayError, ConnectionError) as error:
            raise SweepFailed(
                f"the connection to {address}, or the command's node there, was lost: {error}. "
                "What was finished is in the store; a sweep goes on with --resume."
            ) from error
        finally:
            ray.shutdown()


def name_there(place: int, file: Path) -> str:
    """Return the path of a sent file as the command sees it, from its place among the files."""
    return f"given/{place}/{file.name}"


def _follow(running: Any, show: Show) -> int:
    # Only one read at a time: an abandoned read would take the output that the next read waits for.
    pending = running.read.remote()
    while True:
        try:
            said = ray.get(pending)
            if isinstance(said, int):
                return said
            pending = running.read.remote()
            show(*said)
        except KeyboardInterrupt:
            ray.get(running.interrupt.remote())
