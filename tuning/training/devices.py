"""The names of devices, and the rule by which a run takes a GPU: `auto` takes one where there is one."""

from contrasweep.machine import available_gpus
from contrasweep.tuning.errors import InputError, unknown_name

AUTO = "auto"
DEVICES = (AUTO, "cpu", "cuda")


def device_for(asked: str) -> str:
    """Return torch's name for the device of a run in this process.

    Raises:
        InputError: the name is unknown, or there is no such device here.
    """
    return "cuda" if gpus_wanted(asked, None, available_gpus()) else "cpu"


def gpus_wanted(
    asked: str,
    gpus: float | None,
    there: float,
    machine: str = "this machine has no GPU that torch can use",
    *,
    to_come: bool = False,
) -> float:
    """Return how many GPUs each process of a run takes: one, a part of one, or none to train on the CPU.

    Args:
        asked: the device.
        gpus: the value of `--gpus-per-worker`; None lets the device decide.
        there: the number of GPUs where the run trains.
        machine: what the machine has, for the message that it has no GPU.
        to_come: whether a cluster starts further nodes, which may have GPUs.

    Raises:
        InputError: the name is unknown, there is no such device, `gpus` contradicts it, or nothing says
            whether the nodes to come have GPUs.
    """
    check_device_name(asked)
    if asked == "cuda" and not there and not to_come:
        raise InputError(f"--device cuda was asked for; {machine}")
    if (asked == "cpu" and gpus) or (asked == "cuda" and gpus == 0):
        raise InputError(f"--device {asked} and --gpus-per-worker {gpus:g} exclude each other")
    if gpus is not None:
        return gpus
    if asked == AUTO and to_come and not there:
        raise InputError(
            "--autoscale needs --device cpu or cuda: no node has a GPU now, and those that come may have some"
        )
    return 1.0 if asked == "cuda" or (there and asked == AUTO) else 0.0


def check_device_name(asked: str) -> None:
    """Raise InputError unless there is a device of that name, here or elsewhere; it imports no torch."""
    if asked == "mps":
        raise InputError("device mps cannot be used: scores are computed in float64, which it does not have")
    if asked not in DEVICES:
        raise unknown_name("device", asked, DEVICES)


def device_of(gpus: float) -> str:
    """Return the device on which a worker with `gpus` GPUs trains."""
    return "cuda" if gpus else "cpu"
