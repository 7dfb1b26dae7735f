"""What torch's profiler sees of training steps: copies, synchronisations, launches, and where time goes."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.autograd import DeviceType
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
    # The profiler itself waits for the whole device at its end, with cudaDeviceSynchronize.
    "synchronisations": ("cudaStreamSynchronize", "cudaEventSynchronize"),
    "calls of cudaMemcpyAsync": ("cudaMemcpyAsync",),
    "launches": ("cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch"),
    "reads of a value": ("aten::_local_scalar_dense",),
    "operators": ("aten::",),
}
"""What is counted, by the beginnings of the events' names."""

COPIES = 2
"""The most copies to the device in a step of `infonce`; on the stand-in for a GPU it has one."""

WAITS = 2
"""The most waits for the device in a step of any method: libraries of linear algebra may wait."""

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
        "launches a step, infonce": by_optimizer["sgd"]["launches"],
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
        "most synchronisations a step of a method": WAITS,
    }
    # Without launches, the profiler did not see the GPU, and the other counts mean nothing.
    seen = Limit("launches a step, infonce", "at least", 1, judged=place.on_gpu)
    return [seen, *(Limit(name, "at most", bound, judged=place.on_gpu) for name, bound in bounds.items())]


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
    averages = watch.profiler.key_averages()
    order = "self_device_time_total" if place.on_gpu else "self_cpu_time_total"
    table = averages.table(sort_by=order, row_limit=10, max_name_column_width=70)
    (place.out / "top-ten.txt").write_text(table, encoding="utf-8")
    watch.profiler.export_chrome_trace(str(place.out / "trace.json.gz"))
    times = _times(averages, order, place)
    spans = [event.time_range for event in watch.profiler.events()]
    wall = max(span.end for span in spans) - min(span.start for span in spans)
    first = next(iter(times))
    total = sum(times.values())
    figures = {
        "share of the time in kernels": total / wall,
        "milliseconds a step": wall / 1000 / (watch.last - watch.first),
        "top ten, share of the time in kernels": {name: times[name] / total for name in list(times)[:10]},
        "trace, bytes": (place.out / "trace.json.gz").stat().st_size,
    }
    return Findings(
        f"{figures['milliseconds a step']:.1f} ms a step, {total / wall:.0%} of it in kernels, "
        f"{times[first] / total:.0%} of that in {short(first)}; trace.json.gz, top-ten.txt",
        figures,
        [Limit("trace, bytes", "at least", 1), Limit("share of the time in kernels", "at least", 1e-3)],
    )


def short(kernel: str) -> str:
    """Return the bare name of a C++ kernel: without its result, namespaces, template values and arguments."""
    named = kernel.removeprefix("void ").replace("(anonymous namespace)::", "")
    return re.split(r"[<(]", named)[0].rpartition("::")[2]


def _times(averages: Any, order: str, place: Place) -> dict[str, float]:
    """Return the time of each kernel, longest first; without a GPU, of each operator."""
    # An operator has the time of its kernels too: on a GPU, only kernels are counted.
    kind = DeviceType.CUDA if place.on_gpu else DeviceType.CPU
    counted = [one for one in averages if one.device_type == kind and not one.is_user_annotation]
    longest = sorted(counted, key=lambda one: getattr(one, order), reverse=True)
    return {one.key: getattr(one, order) for one in longest}
