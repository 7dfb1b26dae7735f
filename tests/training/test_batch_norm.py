"""Batch norms of libraries keep what they do after the normalisation when ranks share it."""

import pytest
import torch
from torch import Tensor, nn

from contrasweep.models import build_encoder
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.objectives.batch_norm import GlobalBatchNorm, synchronise_batch_norm

CPU = torch.device("cpu")


class NormAndActivation(nn.BatchNorm2d):
    """As timm's `BatchNormAct2d`."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.drop, self.act = nn.Identity(), nn.PReLU()

    def forward(self, inputs: Tensor) -> Tensor:
        activated: Tensor = self.act(self.drop(super().forward(inputs)))
        return activated


class OfItsOwn(nn.BatchNorm2d):
    def forward(self, inputs: Tensor) -> Tensor:
        return 2 * super().forward(inputs)


class Statistics(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("running_var", torch.ones(3))


def test_an_activation_after_the_norm_stays() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 4, 1), NormAndActivation(4))
    images, names = torch.randn(5, 3, 2, 2), list(network.state_dict())
    before = network(images)
    network.load_state_dict({**network.state_dict(), "1.running_mean": torch.zeros(4)})
    synchronise_batch_norm(network, CPU)
    assert isinstance(network[1], GlobalBatchNorm)
    assert torch.equal(network(images), before)
    assert bool((before < 0).any())
    assert sorted(network.state_dict()) == sorted(names)


@pytest.mark.parametrize("layer", [OfItsOwn(3), Statistics()])
def test_a_norm_that_cannot_be_shared_is_refused(layer: nn.Module) -> None:
    with pytest.raises(InputError, match=f"{type(layer).__name__} normalises by the images of one worker"):
        synchronise_batch_norm(nn.Sequential(layer), CPU)


@pytest.mark.parametrize(
    "name", ["torchvision:mobilenet_v3_small", "timm:test_efficientnet", "timm:test_resnet"]
)
def test_networks_of_libraries_compute_the_same(name: str) -> None:
    if name.startswith("timm"):
        pytest.importorskip("timm")
    encoder, images = build_encoder(name, 3, 32), torch.rand(4, 3, 32, 32)
    before = encoder(images)
    synchronise_batch_norm(encoder, CPU)
    assert torch.equal(encoder(images), before)
