"""What torch's profiler sees of training steps: copies, synchronisations, launches, and where time goes."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.gpu import made_up
from benchmarks.gpu.digits import FewImages, methods, quick_run
from benchmarks.gpu.findings import Findings, Limit, Place
from benchmarks.gpu.speed import BATCH, experiment_of
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.objectives.prepared import Prepared
from contrasweep.tuning.training.pretrain import pretrain

KINDS: Mapping[str, tuple[str, ...]] = {
    "copies to the device": ("Memcpy HtoD",),
    "blocking copies to the device": ("Memcpy HtoD (Pageable",),
    "copies to the host": ("Memcpy DtoH",),
    "synchronisations": ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize"),
    "calls of cudaMemcpyAsync": ("cudaMemcpyAsync",),
    "launches": ("cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch"),
    "reads of a value": ("aten::_local_scalar_dense",),
    "operators": ("aten::",),
}
"""What is counted, by the beginnings of the events' names."""

COPIES = 3
"""Copies to the device a step of `infonce`: the parameters of two views, and the rows."""

UNSCORED = {"validation.fraction": 0.0}
"""Only steps are looked at: no encoder is scored."""

OPTIMIZERS = ("sgd", "lars", "adamw")


@dataclass
class Watched:
    """Profiles an epoch from the end of step `first` to that of step `last`; it is called after each step."""

    epoch: int
    first: int
    last: int
    on_gpu: bool
    profiler: Any = field(init=False)

    def __post_init__(self) -> None:
        there = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if self.on_gpu else [])]
        self.profiler = profile(activities=there)

    def __call__(self, epoch: int, step: int, _: int) -> None:
        if epoch == self.epoch and step in (self.first, self.last):
            if self.on_gpu:
                torch.cuda.synchronize()
            (self.profiler.start if step == self.first else self.profiler.stop)()

    def a_step(self) -> dict[str, float]:
        """Return how many events of each kind a step has."""
        names = Counter(event.name for event in self.profiler.events())
        steps = self.last - self.first
        return {
            kind: sum(count for name, count in names.items() if name.startswith(beginnings)) / steps
            for kind, beginnings in KINDS.items()
        }


def watched(
    experiment: Experiment, data: Prepared, device: str, state: bytes | None = None
) -> dict[str, float]:
    """Return the events a step, from the third step of the run's first epoch to the step before its last."""
    steps = METHODS[experiment.method].feed(experiment, data).sampler.steps_per_epoch
    watch = Watched(1 if state is None else 2, 2, steps - 1, device == "cuda")
    for record in pretrain(experiment, state, data=data, device=device, on_step=watch):
        if record.epoch == watch.epoch:
            break
    return watch.a_step()


def after_one_epoch(experiment: Experiment, data: Prepared, device: str) -> bytes:
    """Return the checkpoint of epoch 1."""
    records = pretrain(experiment, data=data, device=device)
    next(records)
    return next(records).checkpoint()


def counts(place: Place) -> Findings:
    """Count the events of a step of every method, and of every optimizer, also of a resumed run."""
    images = FewImages(place.device, 288)
    by_method = {}
    for name in methods(place.sized(len(METHODS), 2)):
        experiment = quick_run(name, UNSCORED)
        by_method[name] = watched(experiment, images.of(experiment), place.device)
    by_optimizer = {}
    for name in OPTIMIZERS:
        experiment = quick_run("infonce", {**UNSCORED, "optimizer.name": name, "optimizer.lr": 1e-3})
        data = images.of(experiment)
        by_optimizer[name] = watched(experiment, data, place.device)
        state = after_one_epoch(experiment, data, place.device)
        by_optimizer[f"{name}, resumed"] = watched(experiment, data, place.device, state)
    waits = "synchronisations"
    figures = {
        "copies to the device a step, infonce": by_optimizer["sgd"]["copies to the device"],
        "blocking copies to the device a step, infonce": by_optimizer["sgd"]["blocking copies to the device"],
        "most synchronisations a step of an optimizer": max(one[waits] for one in by_optimizer.values()),
        "most synchronisations a step of a method": max(one[waits] for one in by_method.values()),
        "methods that synchronise": sorted(name for name, one in by_method.items() if one[waits]),
        "by method": by_method,
        "by optimizer": by_optimizer,
    }
    return Findings(_counts_in_words(figures, place), figures, _count_limits(place))


def _counts_in_words(figures: Mapping[str, Any], place: Place) -> str:
    if not place.on_gpu:
        return f"{len(figures['by method'])} methods; without a GPU there is nothing to wait for"
    return (
        f"infonce: {figures['copies to the device a step, infonce']:.1f} copies to the device a step; "
        f"{len(figures['methods that synchronise'])} methods synchronise, at most "
        f"{figures['most synchronisations a step of a method']:.1f} times a step"
    )


def _count_limits(place: Place) -> list[Limit]:
    bounds = {
        "copies to the device a step, infonce": COPIES,
        "blocking copies to the device a step, infonce": 0,
        "most synchronisations a step of an optimizer": 0,
        "most synchronisations a step of a method": 0,
    }
    return [Limit(name, "at most", bound, judged=place.on_gpu) for name, bound in bounds.items()]


def profiled(place: Place) -> Findings:
    """Profile some steps of ResNet-18 in bf16; write the trace and the ten operators that take longest."""
    experiment = experiment_of(place, {"compute.precision": "bf16", "epochs": 2})
    size = experiment.batch_size
    assert size <= BATCH
    data = made_up.cifar_like(8 * size, place.device)
    watch = Watched(2, 2, 7, place.on_gpu)
    for record in pretrain(experiment, data=data, device=place.device, on_step=watch):
        if record.epoch == 2:
            break
    return _written(watch, place)


def _written(watch: Watched, place: Place) -> Findings:
    order = "self_device_time_total" if place.on_gpu else "self_cpu_time_total"
    averages = watch.profiler.key_averages()
    longest = sorted(averages, key=lambda one: getattr(one, order), reverse=True)[:10]
    total = sum(getattr(one, order) for one in averages)
    table = averages.table(sort_by=order, row_limit=10, max_name_column_width=70)
    (place.out / "top-ten.txt").write_text(table, encoding="utf-8")
    watch.profiler.export_chrome_trace(str(place.out / "trace.json.gz"))
    begins = [event.time_range.start for event in watch.profiler.events()]
    ends = [event.time_range.end for event in watch.profiler.events()]
    wall = max(ends) - min(begins)
    figures = {
        "share of the time in which the GPU is busy" if place.on_gpu else "share of operators": total / wall,
        "milliseconds a step": wall / 1000 / (watch.last - watch.first),
        "top ten": {one.key: getattr(one, order) / total for one in longest},
        "trace, bytes": (place.out / "trace.json.gz").stat().st_size,
    }
    first = longest[0]
    return Findings(
        f"{figures['milliseconds a step']:.1f} ms a step; most time: {first.key} "
        f"({getattr(first, order) / total:.0%}); trace.json.gz, top-ten.txt",
        figures,
        [Limit("trace, bytes", "at least", 1)],
    )
