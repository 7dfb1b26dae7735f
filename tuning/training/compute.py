"""The compute settings of a run: its precision, compiled code, deterministic algorithms."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from contrasweep.models import Encoder
from contrasweep.tuning.experiment import ComputeSettings


def set_precision(network: nn.Module, settings: ComputeSettings) -> None:
    """Make every backbone of a network train in bfloat16 where the settings say so, else in float32."""
    for encoder in _encoders(network):
        encoder.trains_in_bf16 = settings.precision == "bf16"


def compile_backbones(network: nn.Module, settings: ComputeSettings) -> None:
    """Let torch compile every backbone at its first use where asked for; the names in its state stay."""
    if settings.compile:
        for encoder in _encoders(network):
            encoder.body.compile()


@contextmanager
def computing(settings: ComputeSettings, device: torch.device) -> Iterator[None]:
    """Compute as the settings say inside; restore torch's own settings afterwards.

    All that is computed for a run belongs inside: its start, its epochs, their scores, its scores on the test
    data. A GPU computes float32 in float32: torch itself would round the factors of cuDNN's convolutions to
    TF32. `training_steps` allows that to those who ask. Where `deterministic` is asked for, torch refuses
    operations that give other numbers each time.
    """
    if device.type == "cuda":
        # cuBLAS reads this at its first use in a process, which may be in an earlier run than the first
        # deterministic one. Without it, torch then refuses matrix products.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    with _tf32(allowed=False), _algorithms(deterministic=settings.deterministic, fastest=False):
        yield


@contextmanager
def training_steps(settings: ComputeSettings, *, same_shapes: bool = True) -> Iterator[None]:
    """Inside `computing`, go through the steps of an epoch.

    With the precision `tf32`, GPUs that have TF32 use it for convolutions and matrix products. With batches
    of the `same_shapes`, cuDNN tries its convolutions at the first step and keeps the fastest, unless the run
    is deterministic. It would try them again for every other shape, and the host would wait.
    """
    allowed, deterministic = settings.precision == "tf32", settings.deterministic
    fastest = same_shapes and not deterministic
    with _tf32(allowed=allowed), _algorithms(deterministic=deterministic, fastest=fastest):
        yield


@contextmanager
def _tf32(*, allowed: bool) -> Iterator[None]:
    """Allow or forbid TF32 in matrix products and convolutions on a GPU."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    # Operations have a precision of their own since torch 2.9.
    parts: tuple[Any, ...] = (matmul, cudnn.conv, cudnn.rnn) if hasattr(cudnn, "conv") else ()
    exact = [part.fp32_precision for part in parts]
    before = [one == "tf32" for one in exact[:2]] or [matmul.allow_tf32, cudnn.allow_tf32]
    # Torch's compiler reads the older switches, and reading them is an error where the newer ones disagree.
    # So both are set, the newer ones last.
    matmul.allow_tf32 = cudnn.allow_tf32 = allowed
    for part in parts:
        part.fp32_precision = "tf32" if allowed else "ieee"
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = before
        for part, precision in zip(parts, exact, strict=True):
            part.fp32_precision = precision


@contextmanager
def _algorithms(*, deterministic: bool, fastest: bool) -> Iterator[None]:
    """Choose among algorithms: `deterministic` alone, and the `fastest` of cuDNN's by a trial of each."""
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    benchmark = torch.backends.cudnn.benchmark
    if deterministic:
        # Called only where needed: this function imports torch's compiler.
        torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = fastest
    try:
        yield
    finally:
        if deterministic:
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        torch.backends.cudnn.benchmark = benchmark


def _encoders(network: nn.Module) -> list[Encoder]:
    return [module for module in network.modules() if isinstance(module, Encoder)]
