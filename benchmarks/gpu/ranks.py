"""Several processes that train one run: two ranks with gloo on one device, one rank with NCCL."""

import hashlib
import multiprocessing
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from benchmarks.gpu.digits import FewImages, well_conditioned_run
from benchmarks.gpu.findings import Findings, Limit, Place
from contrasweep.losses.gather import gather
from contrasweep.tuning.objectives.ranks import ONE, Ranks, group_ranks
from contrasweep.tuning.training.pretrain import pretrain

WORLD = 2
METHODS = ("infonce", "supcon", "moco-v2", "fair-cclk", "barlow-twins", "swav")
"""Methods whose ranks exchange different things: embeddings, labels, a queue, conditions, sums."""

TOLERANCE = 1e-4
"""The largest relative difference between the loss of an epoch of two ranks and of one process."""

Ends = dict[str, tuple[list[float], str]]


def ends_of(names: tuple[str, ...], device: str, ranks: Ranks = ONE) -> Ends:
    """Return the losses of the epochs of short runs, and a digest of their last state, by method."""
    images, found = FewImages(device, 96), {}
    for name in names:
        experiment = well_conditioned_run(name)
        records = list(pretrain(experiment, data=images.of(experiment), device=device, ranks=ranks))
        losses = [record.metrics["train.loss"] for record in records if record.epoch]
        found[name] = losses, _digest(records[-1].objective)
    return found


def _digest(module: torch.nn.Module) -> str:
    held = hashlib.blake2b()
    for tensor in module.state_dict().values():
        held.update(tensor.cpu().contiguous().numpy().tobytes())
    return held.hexdigest()


def gloo(place: Place) -> Findings:
    """Train with two ranks on the one device, and compare with one process."""
    names = METHODS[: place.sized(len(METHODS), 2)]
    alone = ends_of(names, place.device)
    with tempfile.TemporaryDirectory() as folder:
        found = _results(_rank, WORLD, folder, "gloo", place.device, names)
    apart = {name: _apart(alone[name][0], found[0][name][0]) for name in names}
    same = [name for name in names if found[0][name][1] == found[1][name][1]]
    figures = {
        "largest relative difference of a loss": max(apart.values()),
        "methods whose ranks hold other bits": len(names) - len(same),
        "losses apart": apart,
    }
    return Findings(
        f"{len(names)} methods on {WORLD} ranks; losses within {max(apart.values()):.1e} of one process",
        figures,
        [
            Limit("largest relative difference of a loss", "at most", TOLERANCE),
            Limit("methods whose ranks hold other bits", "at most", 0),
        ],
    )


def nccl(place: Place) -> Findings:
    """Exchange tensors and train in a group of one rank, as Ray's workers build theirs."""
    with tempfile.TemporaryDirectory() as folder:
        (found,) = _results(_only_rank, 1, folder, "cpu:gloo,cuda:nccl", place.device, METHODS[:1])
    alone = ends_of(METHODS[:1], place.device)
    same = found.pop("losses") == alone[METHODS[0]][0]
    figures = {**found, "same losses as without a group": int(same)}
    checks = [name for name, value in figures.items() if isinstance(value, int)]
    return Findings(
        f"{sum(figures[name] for name in checks)} of {len(checks)} checks hold",
        figures,
        [Limit(name, "at least", 1) for name in checks],
    )


def _apart(one: list[float], other: list[float]) -> float:
    return max(abs(a - b) / abs(a) for a, b in zip(one, other, strict=True))


def _results(run: Callable[..., None], world: int, folder: str, *arguments: Any) -> list[Any]:
    """Call `run(rank, folder, ...)` in processes of their own; return what each has saved."""
    multiprocessing.set_forkserver_preload(["torch", "contrasweep.tuning.training.pretrain"])
    mp.start_processes(run, args=(world, folder, *arguments), nprocs=world, start_method="forkserver")
    return [torch.load(Path(folder) / f"rank-{rank}.pt", weights_only=True) for rank in range(world)]


@contextmanager
def _group(rank: int, world: int, folder: str, backend: str) -> Iterator[Ranks]:
    torch.set_num_threads(1)
    dist.init_process_group(backend, init_method=f"file://{folder}/meeting", rank=rank, world_size=world)
    try:
        yield group_ranks()
    finally:
        dist.destroy_process_group()


def _rank(rank: int, world: int, folder: str, backend: str, device: str, names: tuple[str, ...]) -> None:
    with _group(rank, world, folder, backend) as ranks:
        torch.save(ends_of(names, device, ranks), Path(folder) / f"rank-{rank}.pt")


def _only_rank(rank: int, world: int, folder: str, backend: str, device: str, names: tuple[str, ...]) -> None:
    torch.cuda.set_device(0)
    with _group(rank, world, folder, backend) as ranks:
        ones = torch.arange(4.0, device=device, requires_grad=True)
        total = ones.detach().clone()
        dist.all_reduce(total)
        copies = [torch.empty_like(total)]
        dist.all_gather(copies, total)
        gather(ones).sum().backward()
        norm = torch.nn.SyncBatchNorm(4).to(device)
        normed = norm(torch.randn(8, 4, device=device))
        torch.save(
            {
                "all_reduce": int(torch.equal(total, ones.detach())),
                "all_gather": int(torch.equal(copies[0], total)),
                "gather with gradient": int(ones.grad is not None and bool((ones.grad == 1).all())),
                "SyncBatchNorm": int(bool(normed.isfinite().all())),
                "broadcast of objects": int(ranks.once(lambda: "told") == "told"),
                "losses": ends_of(names, device, ranks)[names[0]][0],
            },
            Path(folder) / f"rank-{rank}.pt",
        )
