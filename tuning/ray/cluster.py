"""Ray for one piece of work: a local Ray that starts and stops with it, or a cluster that already runs.

Of a cluster: find it, and send our code to its nodes; `nodes` checks that they see our files.
"""

import logging
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray

from contrasweep.tuning.errors import InputError, SweepFailed
from contrasweep.tuning.planning.resources import CLIENT_SCHEME, Machine, Resources
from contrasweep.tuning.ray import internals
from contrasweep.tuning.ray.liveness import stopping_without_ray
from contrasweep.tuning.ray.nodes import Needs, live_nodes, refuse_blind_nodes
from contrasweep.tuning.ray.signals import interrupted_afterwards, stopping_on_signals

log = logging.getLogger(__name__)

STARTS = 3
"""How often Ray is started: it gives its processes 15 s, which is too short on a busy machine."""

ROOM = 64_000_000
"""Bytes that Ray's own files take at first."""

AUTO_ADDRESS = "auto"
ANSWER_SECONDS = 5.0
"""How long an address may take to answer. Ray itself would try for minutes."""

START = "`ray start --head --port=6379` starts one, `ray start --address=HOST:6379` adds a machine to it"
# Inside `ray job submit`, Ray refuses to send our code unless this variable allows it.
OVERRIDE = {"RAY_OVERRIDE_JOB_RUNTIME_ENV": "1"}

# Ray keeps its own reports in the files of its session. Ours are in the results store.
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    # Any number above 1 lets workers report short epochs together (`TrialWorker.train_buffered`).
    "TUNE_RESULT_BUFFER_LENGTH": "1000",
    # Ray Train checks its workers every 2 s by default, so every run would end up to 2 s late.
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.2",
    "RAY_TRAIN_METRICS_ENABLED": "0",
    # Ray Train gives a group 60 s to start, which is too short on a busy machine.
    "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "600",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    # Tune would keep writing a record of all trials, for a restore that we never use.
    "TUNE_GLOBAL_CHECKPOINT_S": "1000000000",
    # Tune would ask for the cluster's resources now and then, for a text that we do not show. Without the GCS
    # the question takes a minute, and nothing interrupts it.
    "TUNE_STATE_REFRESH_PERIOD": "1000000000",
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
}


def cluster_at(address: str, autoscales: bool = False, one_node: bool = False) -> Machine:
    """Return the cores and GPUs of a cluster's nodes; `address` is `auto` or `HOST:PORT`.

    `autoscales` says that the cluster starts further nodes for trials that wait, `one_node` that the workers
    of a trial must be on one node.

    Raises:
        InputError: no cluster answers at the address, or the address has another form.
        RuntimeError: this process is already connected to a Ray.
    """
    with connect(address):
        nodes = [node["Resources"] for node in live_nodes()]
    cpus = tuple(int(node.get("CPU", 0)) for node in nodes)
    gpus = tuple(float(node.get("GPU", 0.0)) for node in nodes)
    return Machine(cpus, gpus, address, autoscales, one_node)


@contextmanager
def connect(address: str) -> Iterator[None]:
    """Connect to a cluster for a `with` block; its nodes run this process's contrasweep, not their own.

    Raises:
        InputError, RuntimeError: see `cluster_at`.
    """
    if ray.is_initialized():
        raise RuntimeError("this process is already connected to a Ray; call ray.shutdown() first")
    _check_form(address)
    if address != AUTO_ADDRESS:
        refuse_silence(address)
    with environment(OVERRIDE):
        try:
            # The nodes import our code before anything that they have installed.
            code = {"py_modules": [str(our_code())]}
            where = "this machine" if address == AUTO_ADDRESS else address
            start_ray(no_cluster(where), address=address, runtime_env=code)
            yield
        finally:
            ray.shutdown()


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a `with` block, except those that the user has set."""
    ours = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)


def our_code() -> Path:
    """Return the folder of this process's contrasweep. Ray sends it to the nodes, and follows its links."""
    return Path(__file__).parents[2]


def start_ray(
    refusal: Callable[[Exception], Exception], again: tuple[type[Exception], ...] = (), **options: Any
) -> None:
    """Start Ray, or connect to one, with the `options` of `ray.init`.

    An error of the types `again` is tried again, `STARTS` times in all; any other, and the last, is raised as
    `refusal` words it.
    """
    for attempt in range(1, STARTS + 1):
        try:
            # An object of Ray that reads the cluster's state waits for ever when it goes before it has
            # connected. An interruption would throw it away: inside `init`, or at the first question.
            with interrupted_afterwards():
                # The store has the error of each trial in one line. Ray would print each with its stack.
                ray.init(log_to_driver=False, logging_level=logging.CRITICAL, **options)
                ray.nodes()  # type: ignore[no-untyped-call]
            return
        except Exception as error:  # Ray raises no narrower type
            ray.shutdown()
            if attempt == STARTS or not isinstance(error, again):
                raise refusal(error) from error
            log.warning("Ray did not start, or let nobody in; tried again: %s", error)


def no_cluster(address: str) -> Callable[[Exception], InputError]:
    """Return what makes an error of Ray one that the user can act on."""
    return lambda error: InputError(f"no Ray cluster can be used at {address}: {error}. {START}")


def _check_form(address: str) -> None:
    if address.startswith(CLIENT_SCHEME):
        raise InputError(
            f"{address}: Ray's client cannot carry a sweep, whose driver must be in the cluster; "
            "`contrasweep sweep ... --address ray://...` runs the whole command there (docs/cluster.md)"
        )
    if address != AUTO_ADDRESS:
        _host_and_port(address)


def refuse_silence(address: str) -> None:
    """Refuse HOST:PORT or ray://HOST:PORT if nothing answers there.

    Raises:
        InputError: nothing answers, or the address has another form.
    """
    try:
        with socket.create_connection(_host_and_port(address), timeout=ANSWER_SECONDS):
            return
    except OSError as error:
        raise InputError(f"no Ray cluster answers at {address} ({error}). {START}") from error


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.removeprefix(CLIENT_SCHEME).rpartition(":")
    if not (host and port.isdecimal() and int(port) < 2**16):
        raise InputError(f"--address takes auto, HOST:PORT or ray://HOST:PORT, given {address!r}")
    return host.strip("[]"), int(port)


@contextmanager
def ray_session(resources: Resources, *needs: Needs) -> Iterator[Path]:
    """Use the Ray that `resources` name for a `with` block; yield a scratch folder that lasts as long.

    All nodes of a cluster must have the `needs` of the studies.

    Raises:
        InputError: no cluster answers at the address, or a node lacks what trials need.
        RuntimeError, SweepFailed: see `local_ray`.
        RayLost: Ray died inside the block.
    """
    machine = resources.machine
    if machine is None or machine.address is None:
        with local_ray(resources.cores) as scratch:
            yield scratch
        return
    # All waiting trials ask for their nodes at once; the Tune of some versions would let one wait at a time.
    pending = {"TUNE_MAX_PENDING_TRIALS_PG": str(resources.concurrency)} if machine.autoscales else {}
    with (
        stopping_on_signals(),
        environment({**ENVIRONMENT, **pending}),
        connect(machine.address),
        _scratch_folder() as scratch,
    ):
        for one in needs:
            refuse_blind_nodes(one)
        with stopping_without_ray():
            yield scratch


@contextmanager
def local_ray(cpus: int) -> Iterator[Path]:
    """Run a local Ray with `cpus` CPUs for a `with` block; yield a scratch folder that lasts as long.

    Raises:
        RuntimeError: this process is already connected to a Ray.
        SweepFailed: Ray did not start, or (RayLost) died inside the block.
    """
    if ray.is_initialized():
        raise RuntimeError("this process is already connected to a Ray; call ray.shutdown() first")
    refuse_full_disk()
    with stopping_on_signals(), environment(ENVIRONMENT), _scratch_folder() as scratch:
        try:
            with internals.fewer_processes():
                start_ray(_not_started, again=(Exception,), address="local", num_cpus=cpus)
            with stopping_without_ray():
                yield scratch
        finally:
            ray.shutdown()


def refuse_full_disk() -> None:
    """Refuse to start a Ray that would wait for its own processes, which cannot write their files.

    Raises:
        SweepFailed: the folder for temporary files has less than `ROOM` left, or there is no such folder.
    """
    mend = "make room, or name another folder: --tmp FOLDER, or the variable TMPDIR"
    try:
        folder = tempfile.gettempdir()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise SweepFailed(f"no temporary file can be written ({error}); {mend}") from error
    if free < ROOM:
        raise SweepFailed(f"{folder} has {free / 1e6:.0f} MB left, and Ray needs {ROOM / 1e6:.0f}; {mend}")


@contextmanager
def _scratch_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="contrasweep-", ignore_cleanup_errors=True) as scratch:
        yield Path(scratch)


def _not_started(error: Exception) -> SweepFailed:
    return SweepFailed(f"Ray did not start, tried {STARTS} times: {error}")
