"""Run a whole command in a cluster from outside, through Ray's client (`ray://HOST:PORT`).

Tune's driver must be in the cluster. So the command runs there, with our code and the files that it names.
Its output and its exit code come back.
"""

import gc
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError

from contrasweep.tuning.errors import SweepFailed
from contrasweep.tuning.ray.cluster import no_cluster, our_code, refuse_silence, start_ray
from contrasweep.tuning.ray.command import RunningCommand, Stream

Show = Callable[[Stream, bytes], None]


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
            # An earlier sweep of this process leaves objects of Ray Tune in cycles. When they are collected,
            # they ask Ray a question: while the client connects, it would wait for the answer for ever.
            gc.collect()
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
