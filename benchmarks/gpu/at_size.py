"""Views, probes, nearest neighbours and k-means at the size of real data: seconds, peak memory, a check."""

import resource
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.gpu import made_up
from benchmarks.gpu.findings import Findings, Limit, Place
from contrasweep.data import RandomViews, kmeans_clusters, torch_generator
from contrasweep.models import accuracy, fit_knn, fit_logistic, fit_ridge, one_hot

MIB = 2**20
LONGEST = 30.0
"""Seconds that one of them may take on a GPU."""

RIGHT = 0.95
"""The share of made-up rows that a classifier gets right: their classes lie apart."""

EXPLAINED = 0.8
"""The share of what the classes explain (sum of squares) that as many clusters explain. Random groups have 0;
merging two classes and splitting a third, as most starts of k-means do in so many dimensions, costs 0.11.
"""

ALL_VIEWS: dict[str, Any] = {
    "brightness": 0.4,
    "contrast": 0.4,
    "saturation": 0.4,
    "hue": 0.1,
    "grayscale": 0.2,
    "blur": 0.5,
}


def views_of(count: int, stored: int, size: int, place: Place) -> Callable[[], float]:
    """Return a function that makes a view of each of `count` images, with every operation on."""
    images, views = made_up.images(count, stored, place.device), RandomViews(size, 0.08, **ALL_VIEWS)
    generator = torch_generator("acceptance views")

    def make() -> float:
        made = views.apply(images, views.draw(count, stored, generator))
        return float(made.isfinite().float().mean())

    return make


def jobs(place: Place) -> dict[str, Callable[[], float]]:
    """Return what is measured by name; each job returns the share that came out right.

    This is a share of rows, but for k-means into as many clusters as there are classes, see `EXPLAINED`.
    """
    rows, queries = place.sized(50_000, 500), place.sized(10_000, 100)
    width, clusters = place.sized(2048, 32), place.sized(1000, 20)
    known, labels = made_up.features(rows + queries, width, place.device)
    train, held_out = (known[:rows], labels[:rows]), (known[rows:], labels[rows:])
    few, targets = place.sized(512, 32), one_hot(train[1], made_up.CLASSES)

    def scored(fit: Callable[[], Any]) -> Callable[[], float]:
        return lambda: float(accuracy(fit(), *held_out))

    def one_a_class() -> float:
        found = kmeans_clusters(train[0], made_up.CLASSES, 0, starts=3).to(train[0].device)
        return explained(train[0], found) / explained(train[0], train[1])

    def many_clusters() -> float:
        found = kmeans_clusters(train[0][:, :few], clusters, 0, starts=1, iterations=20)
        return float(len(found.unique()) == clusters)

    batch, large = place.sized(4096, 64), place.sized(512, 4)
    return {
        f"views, {batch} images of 32 pixels": views_of(batch, 32, 32, place),
        f"views, {large} images of 256 to 224 pixels": views_of(large, 256, 224, place),
        f"ridge probe, {rows} x {width}": scored(lambda: fit_ridge(train[0], targets)),
        f"logistic probe, {rows} x {width}": scored(lambda: fit_logistic(*train, made_up.CLASSES)),
        f"neighbours, {queries} of {rows} x {width}": scored(lambda: fit_knn(*train, made_up.CLASSES)),
        f"k-means, {made_up.CLASSES} of {rows} x {width}": one_a_class,
        f"k-means, {clusters} of {rows} x {few}": many_clusters,
    }


def explained(rows: Tensor, groups: Tensor) -> float:
    """Return the sum of squares of rows `(N, D)` around their mean, less that around the means of groups."""
    members = one_hot(groups, int(groups.max()) + 1).to(rows)
    means = members.T @ (rows - rows.mean(dim=0)) / members.sum(dim=0).clamp(min=1)[:, None]
    return float((members.sum(dim=0) * means.square().sum(dim=1)).sum())


def at_size(place: Place) -> Findings:
    """Measure each job's second run, which has no start-up in it."""
    seconds, memory, right = {}, {}, {}
    for name, job in jobs(place).items():
        job()
        _reset(place)
        started = time.perf_counter()
        right[name] = job()
        seconds[name] = time.perf_counter() - started
        memory[name] = _peak(place)
    clusters = [name for name in right if name.startswith(f"k-means, {made_up.CLASSES} of")]
    figures = {
        "longest, s": max(seconds.values()),
        "smallest share that is right": min(share for name, share in right.items() if name not in clusters),
        "smallest share that clusters explain": min(right[name] for name in clusters),
        "seconds": seconds,
        "peak memory, MiB" if place.on_gpu else "peak memory of the process so far, MiB": memory,
        "share that is right": right,
    }
    slowest = max(seconds, key=seconds.__getitem__)
    return Findings(
        f"{len(seconds)} jobs; longest {seconds[slowest]:.2f} s ({slowest}); most memory "
        f"{max(memory.values()):,.0f} MiB",
        figures,
        [
            Limit("longest, s", "at most", LONGEST, judged=not place.dry_run),
            Limit("smallest share that is right", "at least", RIGHT),
            Limit("smallest share that clusters explain", "at least", EXPLAINED),
        ],
    )


def _reset(place: Place) -> None:
    if place.on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.synchronize()


def _peak(place: Place) -> float:
    if place.on_gpu:
        return torch.cuda.max_memory_allocated() / MIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
