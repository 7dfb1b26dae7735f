"""Which errors of torch are faults of a GPU, which are memory that ran out, and what is said of them."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from contrasweep.tuning.errors import GpuFault, SharedGpuFull, SweepFailed
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.trials.gpu_errors import gpu_errors_in_words, reason_of, refuse_result

DEBUG = "\nCUDA kernel errors might be asynchronously reported at some other API call."
FAULTS = [
    torch.AcceleratorError(f"CUDA error: device-side assert triggered{DEBUG}"),
    torch.AcceleratorError(f"CUDA error: an illegal memory access was encountered{DEBUG}"),
    RuntimeError("CUDA error: unspecified launch failure"),
    RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"),
    RuntimeError("CUDA error: CUBLAS_STATUS_INTERNAL_ERROR when calling `cublasCreate(handle)`"),
    RuntimeError("Triton Error [CUDA]: misaligned address"),
]
FULL = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 8 GiB in all."),
    torch.AcceleratorError(f"CUDA error: out of memory{DEBUG}"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("Triton Error [CUDA]: out of memory"),
]
OWN = [
    ValueError("CUDA error: as a method may word it"),
    RuntimeError("Expected all tensors to be on the same device, but found cuda:0 and cpu"),
    RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"),
    MemoryError(),
]


def wrapped(error: Exception) -> Exception:
    """Return an error that was raised from another one, as torch's compiler does."""
    try:
        raise ValueError("backend='inductor' raised") from error
    except ValueError as outer:
        return outer


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("error", [*FAULTS, *map(wrapped, FAULTS)], ids=str)
def test_a_fault_is_no_result(error: Exception, shared: bool) -> None:
    with pytest.raises(GpuFault) as told:
        refuse_result(error, shared=shared)
    assert "\n" not in str(told.value)
    assert told.value.__cause__ is error


@pytest.mark.parametrize("error", [*FULL, *map(wrapped, FULL)], ids=str)
def test_memory_that_ran_out_is_no_result_on_a_shared_gpu_only(error: Exception) -> None:
    with pytest.raises(SharedGpuFull, match="other trials use too"):
        refuse_result(error, shared=True)
    refuse_result(error, shared=False)
    reason = reason_of(error, resolve("infonce", "digits", {"batch_size": 48}))
    assert reason.startswith("too little memory on the GPU for batch_size 48 with small-conv")
    assert "compute.precision=bf16" in reason
    assert "\n" not in reason


@pytest.mark.parametrize("error", OWN, ids=str)
def test_other_errors_are_results(error: Exception) -> None:
    refuse_result(error, shared=True)
    assert reason_of(error, resolve("infonce", "digits")) == f"{type(error).__name__}: {error}"


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (FAULTS[0], GpuFault, "device-side assert triggered"),
        (FULL[0], SweepFailed, "batch_size 128"),
        (OWN[1], RuntimeError, "^Expected all tensors"),
    ],
)
def test_a_command_says_what_happened(error: Exception, kind: type[Exception], told: str) -> None:
    def records() -> Iterator[Any]:
        yield 1
        raise error

    with pytest.raises(kind, match=told), gpu_errors_in_words(resolve("infonce", "digits")):
        list(records())
