"""Ray for one piece of work: a local Ray that starts and stops with it, or a cluster that already runs."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ray

from contrasweep.tuning.errors import SweepFailed
from contrasweep.tuning.planning.resources import Resources
from contrasweep.tuning.ray.cluster import STARTS, Needs, connect, environment, refuse_blind_nodes, start_ray

# Ray keeps its own reports in the files of its session. Ours are in the results store.
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    # Ray Train checks its workers every 2 s by default, so every run would end up to 2 s late.
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.2",
    "RAY_TRAIN_METRICS_ENABLED": "0",
    # Ray Train gives a group 60 s to start, which is too short on a busy machine.
    "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "600",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    # Tune would keep writing a record of all trials, for a restore that we never use.
    "TUNE_GLOBAL_CHECKPOINT_S": "1000000000",
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
}


@contextmanager
def ray_session(resources: Resources, needs: Needs) -> Iterator[Path]:
    """Use the Ray that `resources` name for a `with` block; yield a scratch folder that lasts as long.

    Raises:
        InputError: no cluster answers at the address, or a node lacks what trials need.
        RuntimeError, SweepFailed: see `local_ray`.
    """
    if resources.address is None:
        with local_ray(resources.cores) as scratch:
            yield scratch
        return
    with environment(ENVIRONMENT), connect(resources.address), _scratch_folder() as scratch:
        refuse_blind_nodes(needs)
        yield scratch


@contextmanager
def local_ray(cpus: int) -> Iterator[Path]:
    """Run a local Ray with `cpus` CPUs for a `with` block; yield a scratch folder that lasts as long.

    Raises:
        RuntimeError: this process is already connected to a Ray.
        SweepFailed: Ray did not start.
    """
    if ray.is_initialized():
        raise RuntimeError("this process is already connected to a Ray; call ray.shutdown() first")
    with environment(ENVIRONMENT), _scratch_folder() as scratch:
        start_ray(_not_started, again=(Exception,), address="local", num_cpus=cpus, include_dashboard=False)
        try:
            yield scratch
        finally:
            ray.shutdown()


@contextmanager
def _scratch_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="contrasweep-", ignore_cleanup_errors=True) as scratch:
        yield Path(scratch)


def _not_started(error: Exception) -> SweepFailed:
    return SweepFailed(f"Ray did not start, tried {STARTS} times: {error}")
