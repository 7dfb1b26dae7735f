"""What the workers of a run reserve on Ray, where it places them, and how they talk to each other."""

from typing import Any

from ray import tune

from contrasweep.tuning.planning.resources import Resources


def of_one_worker(resources: Resources) -> dict[str, float]:
    """Return the CPUs and GPUs that one worker reserves, as Ray names them."""
    return {"CPU": resources.cpus, **({"GPU": resources.gpus} if resources.gpus else {})}


def bundles(resources: Resources) -> Any:
    """Return the resources that one trial reserves.

    Each of several ranks has a bundle. Their owner only waits, so its bundle is empty.
    """
    one = of_one_worker(resources)
    if resources.workers == 1:
        return one
    # Ray leaves the empty bundle out of the group, so the bundle of rank 0 is the first.
    return tune.PlacementGroupFactory([{}, *[one] * resources.workers], strategy=placement(resources))


def placement(resources: Resources) -> str:
    """Return Ray's word for where the workers of a trial are: on few nodes, or all on one."""
    return "STRICT_PACK" if resources.one_node else "PACK"


def backend_for(gpus: float) -> str:
    """Return the backend of a process group: NCCL needs a whole GPU for each rank, gloo does not."""
    return "cpu:gloo,cuda:nccl" if gpus == 1 else "gloo"
