"""Ray for one piece of work: one that starts for it and stops after it on this machine, or a cluster's."""

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ray

from contrasweep.tuning.errors import SweepFailed
from contrasweep.tuning.planning.resources import Resources
from contrasweep.tuning.ray.cluster import Needs, connect, refuse_blind_nodes

log = logging.getLogger(__name__)

STARTS = 3
"""Ray gives its processes 15 s to start, which a machine with much else to do may not keep."""

# Ray's own reports go to files of its session; ours go to the results store.
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    # Ray Train looks at its workers every 2 s, and so is 2 s late at the end of every run.
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.2",
    "RAY_TRAIN_METRICS_ENABLED": "0",
    # It gives a group 60 s to start, which a machine with much else to do may not keep.
    "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "600",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    # Tune's own record of the experiment: written again and again, of all trials, for a restore we never do.
    "TUNE_GLOBAL_CHECKPOINT_S": "1000000000",
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
}


@contextmanager
def ray_session(resources: Resources, needs: Needs) -> Iterator[Path]:
    """Use the Ray that `resources` name while inside; gives a scratch folder that lives as long.

    Raises:
        InputError: nobody is at the cluster's address, or one of its nodes cannot see what trials need.
        RuntimeError, SweepFailed: see `local_ray`.
    """
    if resources.address is None:
        with local_ray(resources.cores) as scratch:
            yield scratch
        return
    with _environment(), connect(resources.address), _scratch_folder() as scratch:
        refuse_blind_nodes(needs)
        yield scratch


@contextmanager
def local_ray(cpus: int) -> Iterator[Path]:
    """Run a local Ray of `cpus` CPUs while inside; gives a scratch folder that lives as long.

    Raises:
        RuntimeError: this process is connected to a Ray already.
        SweepFailed: Ray did not start.
    """
    if ray.is_initialized():
        raise RuntimeError("this process is connected to a Ray already; call ray.shutdown() first")
    with _environment(), _scratch_folder() as scratch:
        _start(cpus)
        try:
            yield scratch
        finally:
            ray.shutdown()


@contextmanager
def _environment() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in ENVIRONMENT}
    os.environ.update({name: value for name, value in ENVIRONMENT.items() if before[name] is None})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)


@contextmanager
def _scratch_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="contrasweep-", ignore_cleanup_errors=True) as scratch:
        yield Path(scratch)


def _start(cpus: int) -> None:
    for attempt in range(1, STARTS + 1):
        try:
            ray.init(
                address="local",
                num_cpus=cpus,
                include_dashboard=False,
                log_to_driver=False,
                # A trial's error is in the store, in a line; Ray would print each with its own stack.
                logging_level=logging.CRITICAL,
            )
            return
        except Exception as error:  # Ray raises no narrower one
            ray.shutdown()
            if attempt == STARTS:
                raise SweepFailed(f"Ray did not start, tried {STARTS} times: {error}") from error
            log.warning("Ray did not start, tried again: %s", error)
