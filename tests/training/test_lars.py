"""LARS against a transcription that loops over tensors and their entries."""

import math

import pytest
import torch
from torch import Tensor, nn

from contrasweep.search_spaces import preset
from contrasweep.tuning.experiment import OptimizerSettings
from contrasweep.tuning.training.optimizers import LARS, build_optimizer

MOMENTUM, DECAY, TRUST = 0.9, 0.05, 0.02
RATES = (0.5, 0.4, 1.5, 0.1)


def _parameters() -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    shapes = [(3, 4), (4,), (2, 2, 2)]
    values = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    return [nn.Parameter(value) for value in values]


def _gradients(step: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(100 + step)
    return [torch.randn(p.shape, generator=generator, dtype=torch.float64) for p in _parameters()]


def _norm(values: list[float]) -> float:
    return math.sqrt(math.fsum(value * value for value in values))


def _reference(exclude: bool, excluded_factor: float) -> list[list[float]]:
    """Flat values of the parameters after `RATES`: m <- 0.9 m + lr * rate * (g + decay w); w <- w - m."""
    weights = [p.flatten().tolist() for p in _parameters()]
    buffers = [[0.0] * len(w) for w in weights]
    one_dimensional = [p.ndim == 1 for p in _parameters()]
    for step, lr in enumerate(RATES):
        for t, gradient in enumerate(_gradients(step)):
            g = gradient.flatten().tolist()
            plain = exclude and one_dimensional[t]
            decay = 0.0 if plain else DECAY
            rate = TRUST * _norm(weights[t]) / (_norm(g) + decay * _norm(weights[t]))
            rate = excluded_factor if plain else rate
            for i in range(len(g)):
                direction = g[i] + decay * weights[t][i]
                buffers[t][i] = MOMENTUM * buffers[t][i] + lr * rate * direction
            weights[t] = [w - m for w, m in zip(weights[t], buffers[t], strict=True)]
    return weights


@pytest.mark.parametrize(("exclude", "factor"), [(True, 1.0), (True, 0.25), (False, 1.0)])
def test_several_steps_at_changing_rates_follow_the_reference(exclude: bool, factor: float) -> None:
    parameters = _parameters()
    chosen = {"exclude": exclude, "excluded_factor": factor}
    optimizer = LARS(parameters, 123.0, momentum=MOMENTUM, weight_decay=DECAY, trust=TRUST, **chosen)
    for step, lr in enumerate(RATES):
        optimizer.param_groups[0]["lr"] = lr
        for parameter, gradient in zip(parameters, _gradients(step), strict=True):
            parameter.grad = gradient
        optimizer.step()
    for parameter, expected in zip(parameters, _reference(exclude, factor), strict=True):
        torch.testing.assert_close(parameter.flatten().detach(), torch.tensor(expected).double())


def test_the_rate_of_a_step_stays_with_its_gradient_in_the_buffer() -> None:
    # With the rate outside the buffer, the second step would carry half of 10, not half of 1000.
    parameter = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = LARS([parameter], 100.0, momentum=0.5, exclude=True)
    parameter.grad = torch.full((1,), 10.0, dtype=torch.float64)
    optimizer.step()
    assert parameter.item() == -1000.0
    optimizer.param_groups[0]["lr"] = 1.0
    parameter.grad = torch.zeros(1, dtype=torch.float64)
    optimizer.step()
    assert parameter.item() == -1500.0


def _after_one_step(exclude: bool, shape: tuple[int, ...], gradient: float) -> Tensor:
    parameter = nn.Parameter(torch.zeros(shape))
    optimizer = LARS([parameter], 1.0, weight_decay=0.1, exclude=exclude)
    parameter.grad = torch.full(shape, gradient)
    optimizer.step()
    return parameter.detach()


@pytest.mark.parametrize("gradient", [0.0, 1.0])
def test_a_tensor_that_starts_at_zero_never_moves_unless_excluded(gradient: float) -> None:
    assert not _after_one_step(False, (3,), gradient).any()
    assert not _after_one_step(False, (2, 2), gradient).any()
    assert not _after_one_step(True, (2, 2), gradient).any()
    assert torch.equal(_after_one_step(True, (3,), gradient), torch.full((3,), -gradient))


@pytest.mark.parametrize("gradient", [1e-24, 1e-30, 1e-45])
def test_a_gradient_whose_norm_is_too_small_for_its_type_moves_nothing(gradient: float) -> None:
    parameter = nn.Parameter(torch.ones(10, 10))
    parameter.grad = torch.full((10, 10), gradient)
    LARS([parameter], 0.1, weight_decay=0.0).step()
    assert torch.equal(parameter.detach(), torch.ones(10, 10))


def test_a_gradient_of_nan_is_not_hidden() -> None:
    parameter = nn.Parameter(torch.ones(2, 2))
    parameter.grad = torch.tensor([[1.0, math.nan], [0.0, 0.0]])
    LARS([parameter], 1.0).step()
    assert bool(parameter.isnan().any())


def test_a_parameter_without_gradient_is_left_alone() -> None:
    parameter = nn.Parameter(torch.ones(2, 2))
    LARS([parameter], 1.0, weight_decay=0.5).step()
    assert torch.equal(parameter.detach(), torch.ones(2, 2))


def test_a_closure_is_refused() -> None:
    with pytest.raises(ValueError, match="closure"):
        LARS([nn.Parameter(torch.ones(1))], 1.0).step(lambda: 0.0)


def test_in_barlow_twins_preset_norms_and_biases_have_a_rate_of_their_own() -> None:
    """The released code gives them 0.0048 where weights have 0.2, without decay and without adapting it."""
    released = preset("barlow-twins", "imagenet1k")
    assert released is not None
    given = {name.partition("."): value for name, value in released["settings"].items()}
    own = {field: value for (section, _, field), value in given.items() if section == "optimizer"}
    settings = OptimizerSettings(**own)
    layer = nn.BatchNorm2d(3)
    for parameter in layer.parameters():
        parameter.grad = torch.ones(3)
    build_optimizer(layer, settings).step()
    step = 0.0048 * 2048 / 256
    torch.testing.assert_close(layer.bias.detach(), torch.full((3,), -step))
    torch.testing.assert_close(layer.weight.detach(), torch.full((3,), 1 - step))


def test_the_settings_reach_the_optimizer() -> None:
    module = nn.Linear(2, 2)
    module.bias.requires_grad_(False)
    common = {"lr": 0.25, "weight_decay": 0.5}
    lars = build_optimizer(
        module,
        OptimizerSettings(name="lars", momentum=0.7, trust=0.01, exclude_norm_and_bias=False, **common),
    )
    sgd = build_optimizer(module, OptimizerSettings(name="sgd", momentum=0.7, **common))
    adam = build_optimizer(module, OptimizerSettings(name="adam", **common))
    assert [type(o).__name__ for o in (lars, sgd, adam)] == ["LARS", "SGD", "Adam"]
    for optimizer in (lars, sgd, adam):
        (group,) = optimizer.param_groups
        assert group["params"] == [module.weight]
        assert {name: group[name] for name in common} == common
    assert lars.param_groups[0]["momentum"] == sgd.param_groups[0]["momentum"] == 0.7
    assert (lars.param_groups[0]["trust"], lars.param_groups[0]["exclude"]) == (0.01, False)
