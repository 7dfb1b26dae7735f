"""Runs on the CPU and on the stand-in device: whether the numbers are the same, and what a step costs."""

import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from contrasweep.data import RandomViews, clusters
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.objectives.prepared import Prepared
from contrasweep.tuning.training.pretrain import EpochRecord, pretrain
from tests.devices.counting import Counts, counted
from tests.devices.standin import install
from tests.synchronising import reading_synchronises_everywhere

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))
from rank_runs import experiment_of, small

IMAGES, BATCH = 48, 16
"""Three steps an epoch: the second shows what a step costs, also where the next batch is made during it."""

CPU = torch.device("cpu")

_untrained: dict[str, dict[str, dict[str, float]]] = {}
_held: dict[tuple[str, int | None], dict[str, Prepared]] = {}


SETTINGS: dict[str, dict[str, Any]] = {
    "adam optimizer": {"optimizer.name": "adam", "probes.classifier": "knn", "probes.kmeans_starts": 2},
    "adamw optimizer": {
        "optimizer.name": "adamw",
        "optimizer.decay_norm_and_bias": False,
        "optimizer.clip_norm": 0.5,
        "optimizer.ema": 0.9,
        "probes.label_free_views": 2,
    },
    "lars optimizer": {"optimizer.name": "lars"},
    "larc optimizer": {"optimizer.name": "larc", "compute.precision": "bf16"},
    "all kinds of views": {
        "views.size": 20,
        "views.brightness": 0.4,
        "views.contrast": 0.4,
        "views.saturation": 0.4,
        "views.hue": 0.1,
        "views.grayscale": 0.2,
        "views.blur": 0.5,
        "views.padding": 2,
        "views.interpolation": "bicubic",
        "encoder.views": "apart",
        "encoder.mean": (0.5,),
        "encoder.std": (0.25,),
    },
}
"""Settings of further runs of InfoNCE: what the runs of the methods leave out."""


@dataclass(frozen=True)
class DeviceRun:
    """What a run on the device did.

    Attributes:
        error: the traceback of what ended it, or nothing.
        different: what differs from the run on the CPU; after `resumed`, what differs when it is resumed.
        step: what happened in the second step of the last epoch.
        resumed_step: what happened in that step of the resumed run.
    """

    error: str = ""
    different: tuple[str, ...] = ()
    step: Counts = field(default_factory=Counts)
    resumed_step: Counts = field(default_factory=Counts)


@dataclass
class _Trace:
    metrics: list[dict[str, float]]
    state: dict[str, torch.Tensor]
    checkpoint: bytes


def method_runs(methods: Iterable[str] = METHODS) -> dict[str, DeviceRun]:
    """Run methods for two epochs of three steps, on the CPU and on the device, and resume them there."""
    # One step of the logistic probe is enough here: one of `SETTINGS` has more.
    quick = {"batch_size": BATCH, "probes.max_steps": 1, "compute.deterministic": True}
    return {method: device_run(experiment_of(method, **quick)) for method in methods}


def setting_runs(names: Iterable[str] = SETTINGS) -> dict[str, DeviceRun]:
    """Do the same with InfoNCE and some of `SETTINGS`."""
    quick = {"batch_size": BATCH, "probes.max_steps": 5}
    return {name: device_run(experiment_of("infonce", **quick, **SETTINGS[name])) for name in names}


def device_run(experiment: Experiment) -> DeviceRun:
    """Run an experiment on the CPU and on the device."""
    try:
        with lloyd_everywhere(), plans_of_a_device(), reading_synchronises_everywhere():
            return _device_run(experiment, install())
    except Exception:  # noqa: BLE001 - whatever a method raises is what the test shows
        return DeviceRun(error=traceback.format_exc(limit=-20))


def _device_run(experiment: Experiment, device: torch.device) -> DeviceRun:
    here = _traced(pretrain(experiment, data=_data(experiment, CPU)))
    there, step = _counted_trace(experiment, None, device)
    resumed, resumed_step = _counted_trace(experiment, there.checkpoint, device)
    different = [*_differences(here, there), *(f"resumed {one}" for one in _differences(there, resumed))]
    return DeviceRun("", tuple(different), step, resumed_step)


def _counted_trace(
    experiment: Experiment, state: bytes | None, device: torch.device
) -> tuple[_Trace, Counts]:
    """Run an experiment on the device; return its trace, and what happened in the second step of an epoch."""
    data = _data(experiment, device)
    after: dict[int, Counts] = {}
    with counted() as counts:

        def on_step(epoch: int, step: int, steps: int) -> None:
            after[step] = counts.copied()

        trace = _traced(pretrain(experiment, state, data=data, device=device, on_step=on_step))
    return trace, after[2].since(after[1])


@contextmanager
def lloyd_everywhere() -> Iterator[None]:
    """Let k-means on the CPU be that of an accelerator: the usual one is another algorithm."""
    usual = clusters._scikit_kmeans

    def lloyd(features: torch.Tensor, count: int, seed: int, starts: int, iterations: int) -> torch.Tensor:
        return clusters.lloyd_kmeans(features, count, seed, starts=starts, iterations=iterations)

    clusters._scikit_kmeans = lloyd
    try:
        yield
    finally:
        clusters._scikit_kmeans = usual


@contextmanager
def plans_of_a_device() -> Iterator[None]:
    """Let views on the CPU be made as on a device: usually they differ by rounding where colours change."""
    usual = RandomViews.plan

    def plan(views: RandomViews, *arguments: Any, **named: Any) -> Any:
        parameters, channels, _, *first = arguments
        return usual(views, parameters, channels, install(), *first, **named)

    RandomViews.plan = plan  # type: ignore[method-assign]
    try:
        yield
    finally:
        RandomViews.plan = usual  # type: ignore[method-assign]


def _data(experiment: Experiment, device: torch.device) -> Prepared:
    held = _held.setdefault((device.type, experiment.views.size), {})
    data = small(experiment, held, device=device, images=IMAGES)
    # As the trials of a sweep do, the runs share the scores of untrained encoders.
    return replace(data, untrained=_untrained.setdefault(f"{device.type} {experiment.dataset}", {}))


def _traced(records: Iterator[EpochRecord]) -> _Trace:
    metrics, checkpoint = [], b""
    for record in records:
        metrics.append(dict(record.metrics))
        if record.epoch == 1:
            checkpoint = record.checkpoint()
    state = {name: value.cpu().clone() for name, value in record.objective.state_dict().items()}
    return _Trace(metrics, state, checkpoint)


def _differences(one: _Trace, other: _Trace) -> Iterator[str]:
    """Yield what differs at the end of two runs, of which the second may have begun later."""
    for whole, part in zip(one.metrics[-len(other.metrics) :], other.metrics, strict=True):
        assert whole.keys() == part.keys()
        yield from (f"{name}: {whole[name]} and {part[name]}" for name in whole if whole[name] != part[name])
    assert one.state.keys() == other.state.keys()
    yield from (name for name in one.state if not torch.equal(one.state[name], other.state[name]))
