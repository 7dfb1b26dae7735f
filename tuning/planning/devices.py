"""Where a run trains: the names that a user gives, against what there is."""

import torch

from contrasweep.tuning.errors import InputError, unknown_name
from contrasweep.tuning.planning.machine import Machine
from contrasweep.tuning.planning.resources import available_gpus

AUTO = "auto"
DEVICES = (AUTO, "cpu", "cuda")


def device_for(asked: str) -> str:
    """Return torch's name for the device of a run in this process; of `auto`, an accelerator if there is one.

    Raises:
        InputError: the name is unknown, or there is no such device here.
    """
    there = available_devices()
    _check_name(asked)
    if asked == AUTO:
        return there[0]
    if asked not in there:
        raise InputError(f"--device {asked} was asked for; torch finds here: {', '.join(there)}")
    return asked


def available_devices() -> tuple[str, ...]:
    """Return what torch can compute on here, accelerators first."""
    return ("cuda", "cpu") if torch.cuda.is_available() else ("cpu",)


def _check_name(asked: str) -> None:
    if asked == "mps":
        raise InputError("device mps cannot be used: scores are computed in float64, which it does not have")
    if asked not in DEVICES:
        raise unknown_name("device", asked, DEVICES)


def gpus_for(asked: str, gpus: float | None, machine: Machine | None = None) -> float:
    """Return how many GPUs each worker of a trial takes: it trains on one (or a part of one), or on the CPU.

    Args:
        asked: the device.
        gpus: in words of `--gpus-per-worker`; None leaves it to the device.
        machine: where trials run; by default here.

    Raises:
        InputError: the name is unknown, there is no such device, or `gpus` say something else.
    """
    _check_name(asked)
    there = available_gpus() if machine is None else machine.gpus
    if asked == "cuda" and not there:
        where = "this machine has no GPU that torch can use" if machine is None else machine.in_words
        raise InputError(f"--device cuda was asked for; {where}")
    if (asked == "cpu" and gpus) or (asked == "cuda" and gpus == 0):
        raise InputError(f"--device {asked} and --gpus-per-worker {gpus:g} exclude each other")
    if gpus is None:
        return 1.0 if there and asked != "cpu" else 0.0
    return gpus
