"""Whether reading a value of a tensor synchronises: the host then waits for the device."""

from torch import Tensor


def reading_synchronises(tensor: Tensor) -> bool:
    """Return whether the host must wait for the tensor's device to read a value of it.

    It does on every device but the CPU. There, tensors have sizes that the shapes of the inputs give, and the
    values of inputs are not checked. On a CPU, sizes that the values give save work.
    """
    return tensor.device.type != "cpu"
