"""The names of devices, and the rule for runs in this process: `auto` takes a GPU where there is one.

`planning.resources.gpus_for` is the same rule for runs in processes of Ray.
"""

from contrasweep.machine import available_devices
from contrasweep.tuning.errors import InputError, unknown_name

AUTO = "auto"
DEVICES = (AUTO, "cpu", "cuda")


def device_for(asked: str) -> str:
    """Return torch's name for the device of a run in this process; `auto` prefers an accelerator.

    Raises:
        InputError: the name is unknown, or there is no such device here.
    """
    there = available_devices()
    check_device_name(asked)
    if asked == AUTO:
        return there[0]
    if asked not in there:
        raise InputError(f"--device {asked} was asked for; torch finds here: {', '.join(there)}")
    return asked


def check_device_name(asked: str) -> None:
    """Raise InputError unless there is a device of that name, here or elsewhere; it imports no torch."""
    if asked == "mps":
        raise InputError("device mps cannot be used: scores are computed in float64, which it does not have")
    if asked not in DEVICES:
        raise unknown_name("device", asked, DEVICES)
