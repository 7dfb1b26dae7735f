"""Where reading a value of a tensor is free, and where it makes the host wait for the device."""

from torch import Tensor


def reading_waits(tensor: Tensor) -> bool:
    """Return whether reading a value makes the host wait for all that the tensor's device has yet to do.

    It does on every device but the CPU. There, tensors have sizes that the shapes of the inputs give, and the
    values of inputs are not checked. On a CPU, sizes that the values give save work.
    """
    return tensor.device.type != "cpu"
