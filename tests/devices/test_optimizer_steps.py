"""Steps of optimizers and of slow copies take as many launches for many tensors as for few, and no wait."""

import io
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

from contrasweep.models import MomentumCopy
from contrasweep.tuning.experiment import OptimizerSettings
from contrasweep.tuning.training.averaging import WeightAverage
from contrasweep.tuning.training.optimizers import build_optimizer, clip_gradients
from tests.devices.counting import counted
from tests.devices.process import DeviceProcess
from tests.devices.standin import install

OPTIMIZERS = ("sgd", "adam", "adamw", "lars", "larc")
MOST_LAUNCHES = 24


@pytest.fixture(scope="module")
def process() -> Iterator[DeviceProcess]:
    found = DeviceProcess("contrasweep.tuning.training.optimizers")
    yield found
    found.close()


def _network(layers: int) -> nn.Module:
    """Return a network with a gradient of ones."""
    parts = [part for _ in range(layers) for part in (nn.Linear(3, 3), nn.BatchNorm1d(3))]
    network = nn.Sequential(*parts).to(install())
    for weight in network.parameters():
        weight.grad = torch.ones_like(weight)
    return network


def _steps(network: nn.Module) -> dict[str, Callable[[], object]]:
    """Return what is done in every step, each done once already, by name."""
    copied, average = MomentumCopy(network), WeightAverage(network, 0.9)
    found: dict[str, Callable[[], object]] = {
        "momentum": lambda: copied.follow(network),
        "average": lambda: average.follow(1),
        "clip": lambda: clip_gradients(network, 1.0),
    }
    for name in OPTIMIZERS:
        found[name] = build_optimizer(network, OptimizerSettings(name=name, weight_decay=0.1)).step
    for step in found.values():
        step()
    return found


def _counts(layers: int) -> dict[str, tuple[int, int]]:
    found = {}
    for name, step in _steps(_network(layers)).items():
        with counted() as counts:
            step()
        found[name] = counts.of("launch"), counts.of("wait")
    return found


def _resumed_adam() -> tuple[int, int]:
    network = _network(2)
    first = build_optimizer(network, OptimizerSettings(name="adam"))
    first.step()
    saved = io.BytesIO()
    torch.save(first.state_dict(), saved)
    saved.seek(0)
    # As `load_checkpoint` does.
    state = torch.load(saved, map_location="cpu", weights_only=True)
    resumed = build_optimizer(network, OptimizerSettings(name="adam"))
    resumed.load_state_dict(state)
    with counted() as counts:
        resumed.step()
    return counts.of("launch"), counts.of("wait")


def test_steps_do_not_wait_and_do_not_grow_with_the_number_of_tensors(process: DeviceProcess) -> None:
    few, many = process(_counts, 2), process(_counts, 9)
    assert few == many
    for name, (launches, waits) in few.items():
        assert 0 < launches <= MOST_LAUNCHES, name
        assert waits == 0, name


def test_adam_that_goes_on_from_a_checkpoint_does_not_wait_either(process: DeviceProcess) -> None:
    assert process(_resumed_adam) == process(_counts, 2)["adam"]
