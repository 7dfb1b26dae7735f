"""Losses against plain transcriptions of the released code, pytorch-metric-learning and lightly.

    python benchmarks/losses.py [--device cpu|cuda] [--rounds 15]

One thread, forward and backward, D = 128. Every row runs both sides in the same process, taking turns, and
prints the best time of each, so a busy machine hurts both alike. Peak memory is that of one step beyond
its inputs, in a process of its own. Rows of libraries that are not installed are left out with a line that
says so.
"""

import argparse
import importlib.util
import os
import platform
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

import transcriptions

import losses

WIDTH, CLASSES, LABELS, LABEL_SHARE = 128, 10, 40, 0.22
SIZES = (256, 512)

Step = Callable[[Tensor], Tensor]


class Row(NamedTuple):
    """A comparison: what is measured, against what, our aim (times faster), and the two losses of the views."""

    name: str
    against: str
    aim: float | None
    ours: Step
    theirs: Step


def rows(B: int, device: str) -> list[Row]:
    g = torch.Generator().manual_seed(0)
    labels = torch.randint(0, CLASSES, (B,), generator=g).to(device)
    bias = torch.where(
        torch.rand(B, generator=g) < 0.8, labels.cpu(), torch.randint(0, CLASSES, (B,), generator=g)
    )
    bias = bias.to(device)
    colour = (torch.rand(B, 3, generator=g) * 255).to(device)
    many = (torch.rand(B, LABELS, generator=g) < LABEL_SHARE).long().to(device)
    H = losses.HeroConUnsupervised(WIDTH).to(device)
    fair = {"sigma2": 5000.0, "lam": 0.01, "temperature": 0.1}
    found = [
        Row(
            "FairCCLK",
            "released",
            100,
            _with(losses.FairCCLK("rbf", **fair), colour),
            lambda v: transcriptions.fair_cclk(v, colour, **fair),
        ),
        Row(
            "WeaklySupCCLK",
            "released",
            100,
            _with(losses.WeaklySupCCLK("rbf", **fair), colour),
            lambda v: transcriptions.weakly_sup_cclk(v, colour, **fair),
        ),
        Row(
            "HeroConSupervised c=40",
            "released loop",
            8,
            lambda v: losses.HeroConSupervised()(v[0], many),
            lambda v: transcriptions.herocon_supervised(v[0], many),
        ),
        Row(
            "HeroConUnsupervised",
            "transcription",
            None,
            H,
            lambda v: transcriptions.herocon_unsupervised(v, H.weight_net.weight, H.weight_net.bias),
        ),
        Row(
            "EpsSupInfoNCE 1 view",
            "released",
            3,
            lambda v: losses.EpsSupInfoNCE(0.1, 0.5)(v[:1], labels),
            lambda v: transcriptions.eps_sup_info_nce(v[:1], labels, 0.1, 0.5),
        ),
        Row(
            "EpsSupInfoNCE 2 views",
            "released",
            3,
            _with(losses.EpsSupInfoNCE(0.1, 0.5), labels),
            lambda v: transcriptions.eps_sup_info_nce(v, labels, 0.1, 0.5),
        ),
        Row(
            "FairKL released",
            "released",
            1.5,
            _with(losses.FairKL("released"), labels, bias),
            lambda v: transcriptions.fair_kl(v, labels, bias),
        ),
        Row(
            "FairKL kl, 1 view",
            "transcription",
            1.5,
            lambda v: losses.FairKL("kl")(v[:1], labels, bias),
            lambda v: transcriptions.fair_kl_gaussian(v[:1], labels, bias),
        ),
        Row(
            "CACR same, K=1",
            "Algorithm 3",
            2,
            losses.CACR(1.0, 2.0, negatives="same"),
            lambda v: transcriptions.cacr(v, 1.0, 2.0),
        ),
        Row(
            "SupCon",
            "released",
            None,
            _with(losses.SupCon(0.1), labels),
            lambda v: transcriptions.sup_con(v, labels, 0.1),
        ),
        Row(
            "NT-Xent",
            "cross-entropy",
            None,
            losses.InfoNCE(0.1, "all"),
            lambda v: transcriptions.nt_xent(v, 0.1),
        ),
    ]
    return found + _library_rows(labels)


def _with(module: torch.nn.Module, *arguments: Tensor) -> Step:
    return lambda views: module(views, *arguments)


def _library_rows(labels: Tensor) -> list[Row]:
    found = []
    if importlib.util.find_spec("pytorch_metric_learning"):
        from pytorch_metric_learning.losses import SupConLoss

        pml = SupConLoss(temperature=0.1)
        found.append(
            Row(
                "SupCon",
                "pytorch-metric-learning",
                2,
                _with(losses.SupCon(0.1), labels),
                lambda v: pml(v.flatten(0, 1), labels.repeat(len(v))),
            )
        )
    else:
        print("pytorch-metric-learning is not installed: its row is left out")
    if importlib.util.find_spec("lightly"):
        from lightly.loss import NTXentLoss

        lightly = NTXentLoss(temperature=0.1)
        found.append(
            Row("NT-Xent", "lightly", 1.2, losses.InfoNCE(0.1, "all"), lambda v: lightly(v[0], v[1]))
        )
    else:
        print("lightly is not installed: its row is left out")
    return found


def step(loss: Step, views: Tensor) -> tuple[float, Tensor]:
    leaf = views.clone().requires_grad_()
    value = loss(leaf)
    value.backward()
    if leaf.device.type == "cuda":
        torch.cuda.synchronize()
    assert leaf.grad is not None
    return value.item(), leaf.grad


def race(row: Row, views: Tensor, rounds: int) -> tuple[float, float]:
    """Best times in ms of ours and theirs, taking turns; slow sides get fewer turns."""
    best = [float("inf"), float("inf")]
    for side in (row.ours, row.theirs):
        step(side, views)
    budget = time.perf_counter() + 8
    for done in range(rounds):
        for index, side in enumerate((row.ours, row.theirs)):
            start = time.perf_counter()
            step(side, views)
            best[index] = min(best[index], time.perf_counter() - start)
        if time.perf_counter() > budget and done >= 2:
            break
    return best[0] * 1e3, best[1] * 1e3


def peak_memory(loss: Step, views: Tensor) -> float:
    """MiB that one step takes beyond what was there before: the process's high-water mark, in a fork."""
    if views.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step(loss, views)
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        step(loss, views)
        os.write(write, str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read) as pipe:
        return int(pipe.read()) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    name = (
        torch.cuda.get_device_name()
        if options.device == "cuda"
        else platform.processor() or platform.machine()
    )
    print(
        f"torch {torch.__version__}, {options.device} ({name}), 1 thread, D = {WIDTH}, forward + backward, best of turns"
    )
    head = f"{'loss':24}{'against':26}{'B':>5}{'ours ms':>10}{'theirs ms':>11}{'ratio':>8}{'aim':>6}{'ours MiB':>10}{'theirs':>8}{'difference':>12}"
    print(head)
    for B in SIZES:
        views = torch.randn(2, B, WIDTH, generator=torch.Generator().manual_seed(1)).to(options.device)
        for row in rows(B, options.device):
            report(row, B, views, options.rounds)


def report(row: Row, B: int, views: Tensor, rounds: int) -> None:
    memory = [peak_memory(side, views) for side in (row.ours, row.theirs)]
    ours, theirs = race(row, views, rounds)
    difference = abs(step(row.ours, views)[0] / step(row.theirs, views)[0] - 1)
    aim = f"{row.aim:g}x" if row.aim else "-"
    print(
        f"{row.name:24}{row.against:26}{B:5}{ours:10.2f}{theirs:11.2f}{theirs / ours:7.1f}x{aim:>6}"
        f"{memory[0]:10.1f}{memory[1]:8.1f}{difference:12.1e}",
        flush=True,
    )


if __name__ == "__main__":
    main()
