"""The part of a machine that this process may use: cores that decode images, memory for decoded ones."""

from dataclasses import dataclass
from typing import Final

import torch

from contrasweep.machine import available_cores, available_gpus

RESIDENT_LIMIT = 4 * 2**30
"""On a CPU, a split with up to this many bytes of decoded pixels is held in memory."""

RESIDENT_SHARE = 0.5
"""The part of a GPU's free memory that a split may take. Networks and their activations need the rest."""

PROCESSES_FROM = 2**29
"""The bytes of decoded pixels, drawn in one go, from which processes are worth their start of seconds."""


@dataclass(frozen=True)
class Share:
    """The part of a machine's GPUs that this process may use.

    Attributes:
        gpu: the part of its own GPU, above 0 and at most 1; processes may share one.
        gpus: how many GPUs the machine has, this process's and others'; its cores are divided among them.
            None where this process sees all of them.
    """

    gpu: float = 1.0
    gpus: float | None = None


_taken: Final = {"share": Share()}


def take_share(share: Share) -> None:
    """Set the share of this process, as `torch.set_num_threads` sets its threads."""
    _taken["share"] = share


def decoders(device: torch.device) -> int:
    """Return how many threads, or processes, decode images for a device.

    For a CPU these are torch's threads, which train there too. A GPU leaves the cores idle, so it gets its
    part of them: on a machine of 16 cores and 2 GPUs 8, or 4 for each of two trials on one GPU.
    """
    threads = max(1, torch.get_num_threads())
    if device.type == "cpu":
        return threads
    share = _taken["share"]
    gpus = share.gpus or max(1, available_gpus())
    return max(threads, int(available_cores() * share.gpu / gpus))


def decodes_in_processes(device: torch.device, size: int) -> bool:
    """Whether processes, not threads, decode so many bytes of pixels for a device.

    Beside a GPU, Python starts kernel after kernel, and threads that decode would wait for its lock. On a
    CPU, torch computes for long without the lock, on the cores that decode.
    """
    return device.type not in ("cpu", "meta") and size >= PROCESSES_FROM


def resident_limit(device: torch.device) -> int:
    """Return how many bytes of decoded pixels a split may have to be held in the memory of a device.

    On a GPU this is `RESIDENT_SHARE` of what is free now, and no more than the process's part of the GPU:
    several processes may look at the same time. Elsewhere it is `RESIDENT_LIMIT`.
    """
    if device.type != "cuda":
        return RESIDENT_LIMIT
    free, total = torch.cuda.mem_get_info(device)
    return int(RESIDENT_SHARE * min(free, _taken["share"].gpu * total))
