"""LARC against its rule written out, one tensor at a time."""

import pytest
import torch
from torch import Tensor

from contrasweep.tuning.experiment import OptimizerSettings
from contrasweep.tuning.training.optimizers import LARC, build_optimizer


def _by_hand(
    p: Tensor, gradients: list[Tensor], lr: float, trust: float, decay: float, momentum: float, clip: bool
) -> Tensor:
    buffer = torch.zeros_like(p)
    for step, g in enumerate(gradients):
        own_rate = trust * float(p.norm()) / (float(g.norm()) + decay * float(p.norm()))
        share = min(1.0, own_rate / lr) if clip else own_rate
        scaled = (g + decay * p) * share
        buffer = scaled if step == 0 else momentum * buffer + scaled
        p = p - lr * buffer
    return p


@pytest.mark.parametrize("clip", [True, False])
@pytest.mark.parametrize("size", [1e-4, 1.0])
def test_three_steps_are_those_of_the_rule(size: float, clip: bool) -> None:
    """With small gradients a clipped rate is lr; with large ones it is the tensor's own."""
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(4, 3, generator=generator, dtype=torch.float64)
    gradients = [size * torch.randn(4, 3, generator=generator, dtype=torch.float64) for _ in range(3)]
    weight = torch.nn.Parameter(start.clone())
    optimizer = LARC([weight], lr=0.05, momentum=0.95, weight_decay=0.1, trust=0.02, clip=clip)
    for gradient in gradients:
        weight.grad = gradient.clone()
        optimizer.step()
    torch.testing.assert_close(weight.detach(), _by_hand(start, gradients, 0.05, 0.02, 0.1, 0.95, clip))


@pytest.mark.parametrize("clip", [True, False])
def test_a_tensor_of_zeros_moves_at_the_full_rate(clip: bool) -> None:
    weight = torch.nn.Parameter(torch.zeros(3))
    optimizer = LARC([weight], lr=0.5, momentum=0.0, clip=clip)
    weight.grad = torch.ones(3)
    optimizer.step()
    torch.testing.assert_close(weight.detach(), torch.full((3,), -0.5))


@pytest.mark.parametrize("clip", [True, False])
def test_a_gradient_of_zeros_is_no_division_by_zero(clip: bool) -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = LARC([weight], lr=0.5, weight_decay=0.1, clip=clip)  # as in Apex, it does not decay either
    weight.grad = torch.zeros(3)
    optimizer.step()
    assert torch.equal(weight.detach(), torch.ones(3))


def test_without_a_clip_a_vanishing_gradient_stays_one() -> None:
    weight = torch.nn.Parameter(torch.ones(4))
    optimizer = LARC([weight], lr=1.0, trust=1e-3, clip=False)
    weight.grad = torch.full((4,), 1e-15)
    optimizer.step()
    assert torch.equal(weight.detach(), torch.ones(4))


def test_the_settings_choose_between_the_smaller_rate_and_the_product() -> None:
    """SwAV's released code multiplies: with a tensor's own rate far below lr, the step depends on lr."""

    def moved(lr: float, clip: bool) -> float:
        module = torch.nn.Linear(1, 1, bias=False)
        module.weight.data.fill_(1.0)
        module.weight.grad = torch.ones(1, 1)
        settings = OptimizerSettings(name="larc", lr=lr, weight_decay=0.0, larc_clip=clip)
        build_optimizer(module, settings).step()
        return 1.0 - module.weight.item()

    assert [moved(lr, True) for lr in (0.3, 0.6)] == pytest.approx([1e-3, 1e-3], rel=1e-3)
    assert [moved(lr, False) for lr in (0.3, 0.6)] == pytest.approx([3e-4, 6e-4], rel=1e-3)


def test_it_is_built_by_name() -> None:
    settings = OptimizerSettings(name="larc", lr=0.3, momentum=0.8, trust=0.1)
    built = build_optimizer(torch.nn.Linear(2, 2), settings)
    assert isinstance(built, LARC)
    assert built.param_groups[0]["momentum"] == 0.8


def test_a_closure_is_refused() -> None:
    with pytest.raises(ValueError, match="no closure"):
        LARC([torch.nn.Parameter(torch.ones(1))], lr=0.1).step(lambda: 0.0)
