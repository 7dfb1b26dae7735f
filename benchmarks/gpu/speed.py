"""The speed of training: ResNet-18 on images of 32 pixels, by precision, and what the views cost.

An image counts once, although a step encodes two views of it. Cached views are those of the first batches,
given again: what is left is the step without making views.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, get_args
from unittest import mock

from benchmarks.gpu import made_up
from benchmarks.gpu.findings import Findings, Limit, Place, is_h100
from contrasweep.tuning.experiment import ComputeSettings, Experiment
from contrasweep.tuning.objectives.batches import ImageFeed
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.pretrain import pretrain

FLOOR = 21_000
"""Images a second in bf16 on an H100."""

VIEWS_COST = 0.10
"""The largest share of a step's time that views may add, in bf16."""

CACHED = 4
BATCH, STEPS, EPOCHS = 512, 30, 3


def settings_of(place: Place) -> dict[str, dict[str, Any]]:
    """Return the compute settings to measure, by their name."""
    known = get_args(ComputeSettings.model_fields["precision"].annotation)
    named: dict[str, dict[str, Any]] = {one: {"compute.precision": one} for one in known}
    if place.on_gpu:  # compiling for a CPU needs a C++ compiler
        named["bf16 + compile"] = {"compute.precision": "bf16", "compute.compile": True}
    return named


def experiment_of(place: Place, settings: dict[str, Any]) -> Experiment:
    """Return SimCLR's loss and views on images of 32 pixels."""
    colours = {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1, "grayscale": 0.2}
    return resolve(
        "infonce",
        "cifar10",
        {
            **{f"views.{name}": value for name, value in colours.items()},
            "encoder.name": "resnet18-cifar" if place.on_gpu else "small-conv",
            "batch_size": place.sized(BATCH, 32),
            "epochs": place.sized(EPOCHS, 2),
            "validation.fraction": 0.0,
            "schedule.name": "constant",
            "schedule.warmup_epochs": 0,
            **settings,
        },
    )


@contextmanager
def cached_views() -> Iterator[None]:
    """Let feeds make the views of their first batches alone, and give these again and again inside."""
    made = ImageFeed.epoch

    def epoch(feed: ImageFeed, number: int) -> Iterator[Any]:
        steps = feed.sampler.steps_per_epoch
        held = [batch for _, batch in zip(range(min(CACHED, steps)), made(feed, 1), strict=False)]
        for step in range(steps):
            yield held[step % len(held)]

    with mock.patch.object(ImageFeed, "epoch", epoch):
        yield


def images_a_second(experiment: Experiment, data: PreparedData, device: str) -> float:
    """Return the images a second of the fastest epoch but the first, which warms up and compiles."""
    rates = []
    for record in pretrain(experiment, data=data, device=device):
        if record.epoch > 1:
            rates.append(len(data.train) / record.train_seconds)
    return max(rates)


def speed(place: Place) -> Findings:
    """Measure all settings, each with views and with cached views."""
    data = made_up.cifar_like(place.sized(BATCH * STEPS, 96), place.device)
    with_views, cached = {}, {}
    for name, settings in settings_of(place).items():
        experiment = experiment_of(place, settings)
        with_views[name] = images_a_second(experiment, data, place.device)
        with cached_views():
            cached[name] = images_a_second(experiment, data, place.device)
    cost = {name: cached[name] / with_views[name] - 1 for name in cached}
    figures = {
        "images/s in bf16": with_views["bf16"],
        "floor, images/s in bf16 on an H100": FLOOR,
        "views' cost in bf16": cost["bf16"],
        "images/s with views": with_views,
        "images/s with cached views": cached,
        "views' cost": cost,
    }
    limits = [
        Limit("views' cost in bf16", "at most", VIEWS_COST, judged=not place.dry_run),
        Limit("images/s in bf16", "at least", FLOOR, judged=is_h100(place) and not place.dry_run),
    ]
    told = ", ".join(f"{name} {rate:,.0f}" for name, rate in with_views.items())
    return Findings(
        f"images/s: {told} (floor on an H100 in bf16: {FLOOR:,}); views cost {cost['bf16']:.0%} in bf16",
        figures,
        limits,
    )
