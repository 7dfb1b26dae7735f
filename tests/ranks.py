"""Processes of a group for tests, which start in the time of one."""

import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as mp

WORLD = 2


def results_of_ranks(run_rank: Callable[[int, str], None], folder: Path, *needs: str) -> list[dict[str, Any]]:
    """Call `run_rank(rank, folder)` in two processes; return what each has saved as `rank-N.pt`.

    A server imports torch and the modules `needs` once, and the processes are forked from it. On their own,
    each would import them. They cannot be forked from this process: torch refuses that after a backward pass.
    """
    multiprocessing.set_forkserver_preload(["torch", *needs])
    mp.start_processes(run_rank, args=(str(folder),), nprocs=WORLD, start_method="forkserver")
    return [torch.load(folder / f"rank-{rank}.pt", weights_only=False) for rank in range(WORLD)]
