"""Errors of a GPU: out of memory, after which the process can continue, and faults, after which it cannot.

Only this file knows the types and messages of torch's errors. After a fault (an assertion in a kernel, an
access outside of memory, an internal error of cuBLAS or cuDNN), every further call to the GPU fails in this
process, even if the next trial is correct. So a fault ends the process, and does not count against the
configuration.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import torch

from contrasweep.plugin_places import with_plugin_place
from contrasweep.tuning.errors import GpuFault, SharedGpuFull, SweepFailed, one_line
from contrasweep.tuning.experiment import Experiment

_MEMORY: Final = (
    "CUDA out of memory",
    "CUDA error: out of memory",
    "[CUDA]: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUSOLVER_STATUS_ALLOC_FAILED",
)
_FAULTS: Final = (
    "CUDA error:",
    "CUDA driver error:",
    "HIP error:",
    "Triton Error [CUDA]",
    "CUBLAS_STATUS_",
    "CUDNN_STATUS_",
    "CUSOLVER_STATUS_",
    "CUFFT_",
)
"""Parts of the messages of errors that torch raises as RuntimeError or AcceleratorError."""


def refuse_result(error: BaseException, *, shared: bool) -> None:
    """Raise what ends the process, or this try, if `error` must not count as the result of a trial.

    Args:
        error: what a trial raised.
        shared: whether other trials may use the same GPU.

    Raises:
        GpuFault: `error` is a fault of the GPU.
        SharedGpuFull: memory ran out, on a shared GPU.
    """
    found = next((one for one in _causes(error) if _is_memory(one) or _is_fault(one)), None)
    if found is None or (_is_memory(found) and not shared):
        return
    told = _first_line(found)
    if _is_memory(found):
        raise SharedGpuFull(f"too little memory on a GPU that other trials use too ({told})") from error
    raise GpuFault(f"the GPU failed, and no longer serves this process ({told})") from error


def reason_of(error: BaseException, experiment: Experiment) -> str:
    """Return why a trial failed: its error, or, if the GPU's memory ran out, what needs less of it.

    An error in the code of a plug-in is told with its line.
    """
    memory = next((one for one in _causes(error) if _is_memory(one)), None)
    if memory is None:
        return with_plugin_place(error)
    return (
        f"too little memory on the GPU for batch_size {experiment.batch_size} with "
        f"{experiment.encoder.name}: a smaller batch_size, views.size or encoder, compute.precision=bf16, or "
        f"more workers need less of it ({_first_line(memory)})"
    )


@contextmanager
def gpu_errors_in_words(experiment: Experiment) -> Iterator[None]:
    """Turn the errors of a GPU inside the block into ones that the user can act on.

    Raises:
        GpuFault: the GPU no longer serves this process.
        SweepFailed: its memory ran out.
    """
    try:
        yield
    except RuntimeError as error:
        refuse_result(error, shared=False)
        if any(map(_is_memory, _causes(error))):
            raise SweepFailed(reason_of(error, experiment)) from error
        raise


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and what it was raised from: the compiler, for one, wraps errors."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _is_memory(error: BaseException) -> bool:
    return _is(error, torch.OutOfMemoryError, _MEMORY)


def _is_fault(error: BaseException) -> bool:
    return _is(error, torch.AcceleratorError, _FAULTS)


def _is(error: BaseException, kind: type[Exception], parts: tuple[str, ...]) -> bool:
    told = isinstance(error, RuntimeError) and any(part in str(error) for part in parts)
    return told or isinstance(error, kind)


def _first_line(error: BaseException) -> str:
    """Return the line that says what happened: the lines below it tell how to debug CUDA."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return one_line(lines[0])
