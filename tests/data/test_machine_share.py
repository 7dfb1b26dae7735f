"""What a process may use of the cores and of a GPU's memory; no GPU is needed to say it."""

from collections.abc import Iterator

import pytest
import torch

from contrasweep.data import Share, machine_share, take_share
from contrasweep.data.machine_share import (
    PROCESSES_FROM,
    RESIDENT_LIMIT,
    decoders,
    decodes_in_processes,
    resident_limit,
)

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
GIB = 2**30


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine of 16 cores and 2 GPUs of 80 GiB; 60 of them are free."""
    monkeypatch.setattr(machine_share, "available_cores", lambda: 16)
    monkeypatch.setattr(machine_share, "available_gpus", lambda: 2)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (60 * GIB, 80 * GIB))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    yield
    take_share(Share())


@pytest.mark.parametrize(
    ("taken", "threads"),
    [(Share(), 8), (Share(0.25), 2), (Share(1.0, 8.0), 2), (Share(0.1, 8.0), 1), (Share(1.0, 1.0), 16)],
)
def test_a_gpu_gets_its_part_of_the_cores(
    taken: Share, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_share(taken)
    assert decoders(GPU) == threads
    assert decoders(CPU) == 1
    monkeypatch.setattr(torch, "get_num_threads", lambda: 12)
    assert decoders(GPU) == max(12, threads), "no fewer than the user gave"
    assert decoders(CPU) == 12


def test_processes_decode_much_for_a_gpu() -> None:
    assert decodes_in_processes(GPU, PROCESSES_FROM)
    assert not decodes_in_processes(GPU, PROCESSES_FROM - 1)
    assert not decodes_in_processes(CPU, PROCESSES_FROM)


@pytest.mark.parametrize(("part", "limit"), [(1.0, 30), (0.5, 20), (0.25, 10)])
def test_a_split_may_take_half_of_what_is_free_of_a_part_of_a_gpu(part: float, limit: int) -> None:
    take_share(Share(part))
    assert resident_limit(GPU) == limit * GIB
    assert resident_limit(CPU) == RESIDENT_LIMIT


def test_a_full_gpu_takes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (0, 80 * GIB))
    assert resident_limit(GPU) == 0
