"""Where a run trains: the names that a user gives, against what there is."""

import torch

from tuning.errors import InputError, unknown_name
from tuning.machine import Machine
from tuning.resources import available_gpus

AUTO = "auto"
DEVICES = (AUTO, "cpu", "cuda", "mps")


def device_for(asked: str) -> str:
    """Return torch's name for the device of a run in this process; of `auto`, an accelerator if there is one.

    Raises:
        InputError: the name is unknown, or there is no such device here.
    """
    there = available_devices()
    if asked not in DEVICES:
        raise unknown_name("device", asked, DEVICES)
    if asked == AUTO:
        return there[0]
    if asked not in there:
        raise InputError(f"--device {asked} was asked for; torch finds here: {', '.join(there)}")
    return asked


def available_devices() -> tuple[str, ...]:
    """Return what torch can compute on here, accelerators first."""
    found = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    return tuple(name for name, there in found.items() if there)


def gpus_for(asked: str, gpus: float | None, machine: Machine | None = None) -> float:
    """Return how many GPUs each worker of a trial takes: it trains on one (or a part of one), or on the CPU.

    Args:
        asked: the device.
        gpus: in words of `--gpus-per-worker`; None leaves it to the device.
        machine: where trials run; by default here.

    Raises:
        InputError: the name is unknown, there is no such device, or `gpus` say something else.
    """
    if asked not in DEVICES:
        raise unknown_name("device", asked, DEVICES)
    if asked == "mps":
        raise InputError("trials run on cpu or cuda, which Ray counts; mps is for one run: contrasweep train")
    there = available_gpus() if machine is None else machine.gpus
    if asked == "cuda" and not there:
        where = "this machine has no GPU that torch can use" if machine is None else machine.in_words
        raise InputError(f"--device cuda was asked for; {where}")
    if (asked == "cpu" and gpus) or (asked == "cuda" and gpus == 0):
        raise InputError(f"--device {asked} and --gpus-per-worker {gpus:g} exclude each other")
    if gpus is None:
        return 1.0 if there and asked != "cpu" else 0.0
    return gpus
