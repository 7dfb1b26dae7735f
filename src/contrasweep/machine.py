"""The cores and GPUs of this machine, as far as this process may use them."""


def available_cores() -> int:
    """Return how many cores this process may use, by its affinity and its container's quota."""
    import joblib

    return int(joblib.cpu_count())


def available_gpus() -> int:
    """Return how many GPUs torch can use here."""
    import torch

    return torch.cuda.device_count()
