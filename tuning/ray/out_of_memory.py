"""A trial that ran out of memory on a GPU that it shared begins again in a new process, with GPUs to itself.

Tune restarts the trial with the resources that it then requests, whole GPUs, as soon as one is free.
Meanwhile Tune starts no new worker, but existing workers take further trials, so the restart happens at the
latest when no other trial is left.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ray

from contrasweep.tuning.errors import SharedGpuFull
from contrasweep.tuning.planning.resources import Resources
from contrasweep.tuning.ray import internals
from contrasweep.tuning.ray.reserved import bundles
from contrasweep.tuning.trials.trial import TrialRequest


def gpus_of_ray() -> float:
    """Return the GPUs of all nodes of the Ray to which this process is connected."""
    there: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    return there.get("GPU", 0.0)


def request_alone(request: TrialRequest, there: float) -> TrialRequest:
    """Return the request for as much of `there` GPUs as leaves no room for another trial on those it uses."""
    on_one_gpu = math.ceil(request.workers / max(1, int(there)))
    return replace(request, gpus=max(request.gpus, 1 / on_one_gpu), alone=True)


def alone_if_gpu_was_full(
    resources: Resources, there: Callable[[], float] = gpus_of_ray
) -> Callable[[Any], None]:
    """Return what prepares a trial that Tune begins again, after its worker has ended.

    Args:
        resources: those of a trial as it was planned.
        there: returns how many GPUs there are.
    """

    def prepare(trial: Any) -> None:
        _, told = internals.last_failure(trial) or (0, "")
        if SharedGpuFull.__name__ in told and internals.begins_again(trial):
            request = request_alone(trial.config["request"], there())
            given = bundles(replace(resources, gpus=request.gpus))
            internals.change(trial, {"request": request}, given)

    return prepare
