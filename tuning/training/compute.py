"""The compute settings of a run: half precision, compiled code, deterministic algorithms."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from contrasweep.models import Encoder
from contrasweep.tuning.experiment import ComputeSettings


def set_precision(network: nn.Module, settings: ComputeSettings) -> None:
    """Make every backbone of a network train in the precision of the settings."""
    for encoder in _encoders(network):
        encoder.trains_in_bf16 = settings.precision == "bf16"


def compile_backbones(network: nn.Module, settings: ComputeSettings) -> None:
    """Let torch compile every backbone at its first use where asked for; the names in its state stay."""
    if settings.compile:
        for encoder in _encoders(network):
            encoder.body.compile()


@contextmanager
def computing(settings: ComputeSettings, device: torch.device) -> Iterator[None]:
    """Allow only deterministic algorithms inside, where asked for; restore torch's settings afterwards."""
    if not settings.deterministic:
        yield
        return
    if device.type == "cuda":
        # cuBLAS reads this at its first use in a process; without it torch refuses matrix products.
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
