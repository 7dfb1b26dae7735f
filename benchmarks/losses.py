"""Losses against plain transcriptions of the released code, pytorch-metric-learning and lightly.

    python -m benchmarks.losses [--device cpu|cuda] [--rounds 15] [--only TEXT]

One thread, forward and backward, D = 128. Every row runs both sides in turn in the same process and prints
the best time of each, so that a busy machine affects both equally. Peak memory is the additional memory that
one step takes. `difference` is the difference between the two losses: the released codes add 1e-6 inside some
logs. Where a library is not installed, a line says so in place of its rows.
"""

import argparse
import ctypes
import importlib.util
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from benchmarks import transcriptions
from benchmarks.process_memory import resident_mib
from contrasweep import losses

WIDTH, CLASSES, LABELS, LABEL_SHARE = 128, 10, 40, 0.22
SIZES = (256, 512)
SECONDS_A_ROW = 8

Step = Callable[[Tensor], Tensor]


class Row(NamedTuple):
    """The loss, its rival, our aim (times faster), and both losses as functions of the views."""

    name: str
    against: str
    aim: float | None
    ours: Step
    theirs: Step


class Batch(NamedTuple):
    """The data of B images: class, bias (80 % follow the class), background colour, several labels."""

    labels: Tensor
    bias: Tensor
    colour: Tensor
    many: Tensor

    @staticmethod
    def random(B: int, device: str) -> "Batch":
        g = torch.Generator().manual_seed(0)
        labels, other = (torch.randint(0, CLASSES, (B,), generator=g) for _ in range(2))
        bias = torch.where(torch.rand(B, generator=g) < 0.8, labels, other)
        many = (torch.rand(B, LABELS, generator=g) < LABEL_SHARE).long()
        return Batch(*(x.to(device) for x in (labels, bias, torch.rand(B, 3, generator=g) * 255, many)))


def applied(module: nn.Module, *arguments: Tensor) -> Step:
    return lambda views: module(views, *arguments)


def one_view(module: nn.Module, *arguments: Tensor) -> Step:
    return lambda views: module(views[:1], *arguments)


def cclk_rows(b: Batch) -> list[Row]:
    options = {"sigma2": 5000.0, "lam": 0.01, "temperature": 0.1}
    fair, weak = losses.FairCCLK("rbf", **options), losses.WeaklySupCCLK("rbf", **options)
    return [
        Row(
            "FairCCLK",
            "released",
            100,
            applied(fair, b.colour),
            lambda v: transcriptions.fair_cclk(v, b.colour, **options),
        ),
        Row(
            "WeaklySupCCLK",
            "released",
            100,
            applied(weak, b.colour),
            lambda v: transcriptions.weakly_sup_cclk(v, b.colour, **options),
        ),
    ]


def herocon_rows(b: Batch) -> list[Row]:
    supervised = losses.HeroConSupervised()
    with torch.random.fork_rng():
        unsupervised = losses.HeroConUnsupervised(WIDTH).to(b.labels.device)
    H = unsupervised.weight_net
    return [
        Row(
            f"HeroConSupervised c={LABELS}",
            "released loop",
            8,
            lambda v: supervised(v[0], b.many),
            lambda v: transcriptions.herocon_supervised(v[0], b.many),
        ),
        Row(
            "HeroConUnsupervised",
            "term by term",
            None,
            unsupervised,
            lambda v: transcriptions.herocon_unsupervised(v, H.weight, H.bias),
        ),
    ]


def margin_rows(b: Batch) -> list[Row]:
    margin, released, kl = losses.EpsSupInfoNCE(0.1, 0.5), losses.FairKL("released"), losses.FairKL("kl")
    return [
        Row(
            "EpsSupInfoNCE, 2 views",
            "released",
            3,
            applied(margin, b.labels),
            lambda v: transcriptions.eps_sup_info_nce(v, b.labels, 0.1, 0.5),
        ),
        Row(
            "EpsSupInfoNCE, 1 view",
            "released",
            3,
            one_view(margin, b.labels),
            lambda v: transcriptions.eps_sup_info_nce(v[:1], b.labels, 0.1, 0.5),
        ),
        Row(
            "FairKL released, 1 view",
            "released",
            1.5,
            applied(released, b.labels, b.bias),
            lambda v: transcriptions.fair_kl(v, b.labels, b.bias),
        ),
        Row(
            "FairKL kl, 1 view",
            "boolean masks",
            1.5,
            one_view(kl, b.labels, b.bias),
            lambda v: transcriptions.fair_kl_gaussian(v[:1], b.labels, b.bias),
        ),
    ]


def common_rows(b: Batch) -> list[Row]:
    sup_con, nt_xent = losses.SupCon(0.1), losses.InfoNCE(0.1, "all")
    return [
        Row(
            "CACR same, K=1",
            "Algorithm 3",
            2,
            losses.CACR(1.0, 2.0, negatives="same"),
            lambda v: transcriptions.cacr(v, 1.0, 2.0),
        ),
        Row(
            "SupCon, 2 views",
            "released",
            None,
            applied(sup_con, b.labels),
            lambda v: transcriptions.sup_con(v, b.labels, 0.1),
        ),
        Row("NT-Xent", "cross-entropy", None, nt_xent, lambda v: transcriptions.nt_xent(v, 0.1)),
    ]


def library_rows(b: Batch) -> list[Row]:
    found = []
    if importlib.util.find_spec("pytorch_metric_learning"):
        from pytorch_metric_learning.losses import SupConLoss

        pml, ours = SupConLoss(temperature=0.1), losses.SupCon(0.1)
        found.append(
            Row(
                "SupCon, 2 views",
                "pytorch-metric-learning",
                2,
                applied(ours, b.labels),
                lambda v: pml(v.flatten(0, 1), b.labels.repeat(len(v))),
            )
        )
    if importlib.util.find_spec("lightly"):
        from lightly.loss import NTXentLoss

        lightly = NTXentLoss(temperature=0.1)
        ours = losses.InfoNCE(0.1, "all")
        found.append(Row("NT-Xent", "lightly", 1.2, ours, lambda v: lightly(v[0], v[1])))
    return found


def rows(B: int, device: str) -> list[Row]:
    b = Batch.random(B, device)
    return [*cclk_rows(b), *herocon_rows(b), *margin_rows(b), *common_rows(b), *library_rows(b)]


def step(loss: Step, views: Tensor) -> tuple[float, Tensor]:
    leaf = views.clone().requires_grad_()
    value = loss(leaf)
    value.backward()
    if leaf.device.type == "cuda":
        torch.cuda.synchronize()
    assert leaf.grad is not None
    return value.item(), leaf.grad


def race(row: Row, views: Tensor, rounds: int) -> tuple[float, float]:
    """Return the best times of ours and theirs in ms; they take turns until rounds or seconds are over."""
    best = [float("inf"), float("inf")]
    end = time.perf_counter() + SECONDS_A_ROW
    for done in range(rounds):
        for index, side in enumerate((row.ours, row.theirs)):
            start = time.perf_counter()
            step(side, views)
            best[index] = min(best[index], time.perf_counter() - start)
        if time.perf_counter() > end and done >= 2:
            break
    return best[0] * 1e3, best[1] * 1e3


def keep_freed_memory() -> None:
    """Make malloc keep freed memory, as in any process that has trained a step.

    In a process that has held only small tensors, every step gets its pages anew, and the comparison would
    measure nothing but page faults.
    """
    torch.empty(31 * 2**20, dtype=torch.uint8).fill_(1)


def peak_memory(loss: Step, views: Tensor) -> float:
    """Return the additional MiB that one step takes; on the CPU, as Linux counts them."""
    step(loss, views)
    if views.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step(loss, views)
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # reset the high-water mark
    before = resident_mib()
    step(loss, views)
    return resident_mib("VmHWM") - before


def report(row: Row, B: int, views: Tensor, rounds: int) -> None:
    memory = [peak_memory(side, views) for side in (row.ours, row.theirs)]
    ours, theirs = race(row, views, rounds)
    difference = abs(step(row.ours, views)[0] / step(row.theirs, views)[0] - 1)
    aim = f"{row.aim:g}x" if row.aim else "-"
    print(
        f"{row.name:24}{row.against:25}{B:4}{ours:9.2f}{theirs:11.2f}{theirs / ours:7.1f}x{aim:>6}"
        f"{memory[0]:10.1f}{memory[1]:12.1f}{difference:12.1e}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--rounds", type=int, default=15, help="turns per row; fewer for slow rows")
    parser.add_argument("--only", default="", help="only rows whose name contains this")
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    on_gpu = options.device == "cuda"
    name = torch.cuda.get_device_name() if on_gpu else platform.processor() or platform.machine()
    print(f"torch {torch.__version__}, {name}, 1 thread, D = {WIDTH}, forward + backward, best of turns")
    for library in ("pytorch_metric_learning", "lightly"):
        if not importlib.util.find_spec(library):
            print(f"{library} is not installed: its row is left out")
    print(
        f"{'loss':24}{'against':25}{'B':>4}{'ours ms':>9}{'theirs ms':>11}{'ratio':>8}{'aim':>6}"
        f"{'ours MiB':>10}{'theirs MiB':>12}{'difference':>12}"
    )
    for B in SIZES:
        views = torch.randn(2, B, WIDTH, generator=torch.Generator().manual_seed(1)).to(options.device)
        for row in rows(B, options.device):
            if options.only.lower() in row.name.lower():
                report(row, B, views, options.rounds)


if __name__ == "__main__":
    main()
