"""LARC against its rule written out, one tensor at a time."""

import pytest
import torch
from torch import Tensor

from contrasweep.tuning.experiment import OptimizerSettings
from contrasweep.tuning.training.optimizers import LARC, build_optimizer


def _by_hand(
    p: Tensor, gradients: list[Tensor], lr: float, trust: float, decay: float, momentum: float
) -> Tensor:
    buffer = torch.zeros_like(p)
    for step, g in enumerate(gradients):
        share = min(1.0, trust * float(p.norm()) / (float(g.norm()) + decay * float(p.norm())) / lr)
        scaled = (g + decay * p) * share
        buffer = scaled if step == 0 else momentum * buffer + scaled
        p = p - lr * buffer
    return p


@pytest.mark.parametrize("size", [1e-4, 1.0])
def test_three_steps_are_those_of_the_rule(size: float) -> None:
    """With small gradients the rate is clipped at lr; with large ones the tensor's own rate holds."""
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(4, 3, generator=generator, dtype=torch.float64)
    gradients = [size * torch.randn(4, 3, generator=generator, dtype=torch.float64) for _ in range(3)]
    weight = torch.nn.Parameter(start.clone())
    optimizer = LARC([weight], lr=0.05, momentum=0.95, weight_decay=0.1, trust=0.02)
    for gradient in gradients:
        weight.grad = gradient.clone()
        optimizer.step()
    torch.testing.assert_close(weight.detach(), _by_hand(start, gradients, 0.05, 0.02, 0.1, 0.95))


def test_a_tensor_of_zeros_moves_at_the_full_rate() -> None:
    weight = torch.nn.Parameter(torch.zeros(3))
    optimizer = LARC([weight], lr=0.5, momentum=0.0)
    weight.grad = torch.ones(3)
    optimizer.step()
    torch.testing.assert_close(weight.detach(), torch.full((3,), -0.5))


def test_a_gradient_of_zeros_is_no_division_by_zero() -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = LARC([weight], lr=0.5, weight_decay=0.1)  # as in Apex, it does not decay either
    weight.grad = torch.zeros(3)
    optimizer.step()
    assert torch.equal(weight.detach(), torch.ones(3))


def test_it_is_built_by_name() -> None:
    settings = OptimizerSettings(name="larc", lr=0.3, momentum=0.8, trust=0.1)
    built = build_optimizer(torch.nn.Linear(2, 2), settings)
    assert isinstance(built, LARC)
    assert built.param_groups[0]["momentum"] == 0.8


def test_a_closure_is_refused() -> None:
    with pytest.raises(ValueError, match="no closure"):
        LARC([torch.nn.Parameter(torch.ones(1))], lr=0.1).step(lambda: 0.0)
