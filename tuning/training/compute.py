"""How a run computes: in half precision, by compiled code, deterministically; by default as torch does."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from contrasweep.models import Encoder
from contrasweep.tuning.experiment import ComputeSettings


def set_precision(network: nn.Module, settings: ComputeSettings) -> None:
    """Have every backbone of a network train in the settings' precision, and copies that are made of it."""
    for encoder in _encoders(network):
        encoder.trains_in_bf16 = settings.precision == "bf16"


def compile_backbones(network: nn.Module, settings: ComputeSettings) -> None:
    """Have torch compile every backbone at its first use, if asked to; its state keeps its names."""
    if settings.compile:
        for encoder in _encoders(network):
            encoder.body.compile()


@contextmanager
def computing(settings: ComputeSettings, device: torch.device) -> Iterator[None]:
    """Allow only deterministic algorithms while inside, if asked to; what holds outside is as it was."""
    if not settings.deterministic:
        yield
        return
    if device.type == "cuda":
        # cuBLAS reads it when it is first used in a process; without it torch refuses matrix products.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    benchmark = torch.backends.cudnn.benchmark
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        torch.backends.cudnn.benchmark = benchmark


def _encoders(network: nn.Module) -> list[Encoder]:
    return [module for module in network.modules() if isinstance(module, Encoder)]
