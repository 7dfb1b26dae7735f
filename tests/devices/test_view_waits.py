"""What the CPU draws for a step travels to the device in one copy, and the host never waits for the views."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch

from contrasweep.data import (
    LabelledImages,
    MultiView,
    PairedBatches,
    RandomViews,
    SemiSupervisedBatches,
    StreamedImages,
    TransductiveData,
    UniformBatches,
    whole_image,
)
from contrasweep.data.packing import tensors_of, to_device
from contrasweep.tuning.objectives.batches import Feed, ImageFeed, TransductiveFeed
from contrasweep.tuning.objectives.ranks import Ranks
from tests.devices.counting import KINDS, counted
from tests.devices.process import DeviceProcess
from tests.devices.standin import install
from tests.in_memory import InMemory

SIMCLR: dict[str, Any] = {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1, "grayscale": 0.2}
FULL: dict[str, Any] = {**SIMCLR, "blur": 0.5, "mean": (0.5, 0.4, 0.3), "std": (0.2, 0.25, 0.3)}


@dataclass(frozen=True)
class Case:
    """A feed and its limit of launches in a step."""

    launches: int
    channels: int = 3
    size: int = 32
    views: dict[str, Any] = field(default_factory=dict)
    local_crops: int = 0
    streamed: bool = False
    paired: bool = False
    world: int = 1


CASES = {
    "light views of digits": Case(28, channels=1, size=8),
    "views of SimCLR": Case(104, views=FULL),
    "bicubic and padded": Case(44, views={"interpolation": "bicubic", "padding": 4}),
    "multi-crop": Case(200, views=FULL, local_crops=3),
    "streamed": Case(28, streamed=True),
    "streamed multi-crop of pairs on one of two ranks": Case(
        200, views=FULL, local_crops=3, streamed=True, paired=True, world=2
    ),
}


def _feed(case: Case, device: torch.device) -> Feed:
    generator = torch.Generator().manual_seed(0)
    shape = (40, case.channels, case.size, case.size)
    images = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    labels = torch.arange(40) % 5
    condition = torch.rand(40, 2, generator=generator)
    stored = StreamedImages(InMemory(images)) if case.streamed else images
    train = LabelledImages(stored, labels, condition, labels)
    transform = RandomViews(case.size, **{"min_crop": 0.2, **case.views})
    return ImageFeed(
        train.to(device),
        PairedBatches(labels, 12, 0) if case.paired else UniformBatches(40, 12, 0),
        transform,
        seed=0,
        clusters=labels.to(device),
        local=replace(transform, size=20, min_crop=0.05, max_crop=0.2) if case.local_crops else None,
        local_crops=case.local_crops,
        ranks=Ranks(case.world - 1, case.world),
    )


def _transductive(device: torch.device) -> Feed:
    features = torch.arange(60.0).view(30, 2)
    labels = torch.arange(60).view(30, 2) % 2
    data = TransductiveData(
        MultiView((features[:10], features[:10]), labels[:10]).to(device),
        MultiView((features, features)).to(device),
    )
    return TransductiveFeed(data, SemiSupervisedBatches(10, 30, 4, 6, 0))


def _of_an_epoch(name: str) -> tuple[list[dict[str, int]], float]:
    """Return the counts of each step but the first, and the largest difference from the CPU's batches."""

    def feed(device: torch.device) -> Feed:
        return _transductive(device) if name not in CASES else _feed(CASES[name], device)

    batches, steps = iter(feed(install()).epoch(1)), []
    worst = 0.0
    for expected in feed(torch.device("cpu")).epoch(1):
        with counted() as counts:
            batch = next(batches)
        steps.append({kind: counts.of(kind) for kind in KINDS})
        for here, there in zip(tensors_of(expected), tensors_of(batch), strict=True):
            assert there.device == install()
            worst = max(worst, float((there.cpu().double() - here.double()).abs().max()))
    return steps[1:], worst


@pytest.fixture(scope="module")
def process() -> Iterator[DeviceProcess]:
    found = DeviceProcess()
    yield found
    found.close()


@pytest.mark.parametrize("name", CASES)
def test_a_step_copies_once_and_never_waits(name: str, process: DeviceProcess) -> None:
    steps, worst = process(_of_an_epoch, name)
    assert len(steps) >= 2
    for counts in steps:
        # Images from disk are the other copy.
        assert counts["to_device"] == 1 + CASES[name].streamed
        assert counts["to_host"] == counts["wait"] == counts["draw"] == 0
        assert counts["launch"] <= CASES[name].launches
    # Divided by a deviation of 0.2, rounding counts five times.
    assert worst <= (1e-5 if "mean" in CASES[name].views else 2e-6)


def test_transductive_batches_copy_once_and_never_wait(process: DeviceProcess) -> None:
    steps, worst = process(_of_an_epoch, "transductive")
    assert {tuple(counts[kind] for kind in KINDS if kind != "launch") for counts in steps} == {(1, 0, 0, 0)}
    assert worst == 0


def _of_evaluation() -> tuple[int, int, bool]:
    """Return the copies and waits of a second resizing, the waits of packing, and if values are right."""
    images = torch.arange(3 * 9 * 7).view(1, 3, 9, 7).to(torch.uint8)
    there = images.to(install())
    whole_image(there, 6)
    with counted() as resizing:
        resized = whole_image(there, 6)
    tree = (torch.tensor([True]), (), torch.arange(3), 7, (torch.rand(0, 4), torch.rand(2, 3).T))
    with counted() as packing:
        packed = to_device(tree, install())
    assert packed[3] == 7
    same = [
        torch.equal(one.cpu(), other) and one.dtype == other.dtype
        for one, other in zip(tensors_of(packed), tensors_of(tree), strict=True)
    ]
    close = torch.allclose(resized.cpu(), whole_image(images, 6), atol=1e-6)
    return resizing.of("wait") + resizing.of("to_device"), packing.of("wait"), close and all(same)


def test_constants_travel_once_and_packed_tensors_arrive_whole(process: DeviceProcess) -> None:
    assert process(_of_evaluation) == (0, 0, True)
