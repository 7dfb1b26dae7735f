"""AdamW against its rule written out; which tensors decay."""

import pytest
import torch
from torch import nn

from contrasweep.optimizers import SGD
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import OptimizerSettings, parse_experiment
from contrasweep.tuning.training.optimizers import LARC, build_optimizer, with_late_momentum


def _network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


def test_two_steps_of_adamw_are_those_of_the_rule() -> None:
    weight = nn.Parameter(torch.randn(3, 2, dtype=torch.float64))
    module = nn.Module()
    module.register_parameter("weight", weight)
    lr, decay = 0.01, 0.1
    optimizer = build_optimizer(module, OptimizerSettings(name="adamw", lr=lr, weight_decay=decay))
    p, m, v = weight.detach().clone(), torch.zeros(()), torch.zeros(())
    for step in (1, 2):
        g = torch.randn(3, 2, dtype=torch.float64)
        weight.grad = g.clone()
        optimizer.step()
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        p = p - lr * decay * p
        p = p - lr * (m / (1 - 0.9**step)) / ((v / (1 - 0.999**step)).sqrt() + 1e-8)
    torch.testing.assert_close(weight.detach(), p)


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw", "larc", "lars"])
@pytest.mark.parametrize("everywhere", [True, False])
def test_biases_and_norms_decay_only_where_asked_for(name: str, everywhere: bool) -> None:
    """Without a gradient, only the decay moves a weight; LARC decays those alone that have some."""
    own = "exclude_norm_and_bias" if name == "lars" else "decay_norm_and_bias"
    chosen = {own: not everywhere if name == "lars" else everywhere}
    network = _network()
    with torch.no_grad():
        for weight in network.parameters():
            weight.fill_(1.0)
            weight.grad = torch.full_like(weight, 1e-12 if name == "larc" else 0.0)
    settings = OptimizerSettings(name=name, lr=0.1, weight_decay=0.5, trust=1.0, **chosen)
    build_optimizer(network, settings).step()
    for weight in network.parameters():
        moved = not bool((weight == 1.0).all())
        assert moved == (everywhere or weight.ndim > 1)


def test_by_default_all_parameters_are_one_group() -> None:
    """Checkpoints of earlier versions hold one."""
    for name in ("sgd", "adam"):
        (group,) = build_optimizer(_network(), OptimizerSettings(name=name)).param_groups
        assert len(group["params"]) == 6


def test_lars_has_a_setting_of_its_own() -> None:
    optimizer = {"name": "lars", "decay_norm_and_bias": False}
    with pytest.raises(InputError, match="no effect with lars: see exclude_norm_and_bias"):
        parse_experiment({"method": "infonce", "dataset": "digits", "optimizer": optimizer})


@pytest.mark.parametrize(
    ("optimizer", "told"),
    [
        ({"name": "sgd", "larc_clip": False}, "larc_clip false goes with larc, given optimizer.name sgd"),
        ({"name": "lars", "larc_clip": False}, "larc_clip false goes with larc, given optimizer.name lars"),
        ({"name": "sgd", "norm_and_bias_lr_factor": 0.5}, "goes with lars"),
        (
            {"name": "lars", "exclude_norm_and_bias": False, "norm_and_bias_lr_factor": 0.5},
            "goes with lars and optimizer.exclude_norm_and_bias true",
        ),
    ],
)
def test_a_setting_of_another_optimizer_is_refused(optimizer: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        parse_experiment({"method": "infonce", "dataset": "digits", "optimizer": optimizer})


@pytest.mark.parametrize("kind", [SGD, LARC])
def test_a_tensor_may_get_its_first_gradient_after_the_first_fused_step(kind: type[SGD]) -> None:
    """As the prototypes of SwAV do. Torch's fused kernel takes momentum of all tensors, or of none."""

    def steps(fused: bool) -> list[list[float]]:
        early, late = (nn.Parameter(torch.tensor([1.0, -2.0])) for _ in range(2))
        optimizer = with_late_momentum(kind([early, late], lr=0.1, momentum=0.9, fused=fused))
        for number in range(4):
            early.grad = torch.tensor([0.5, 0.25]) * (number + 1)
            late.grad = torch.tensor([-1.0, 0.5]) if number >= 2 else None
            optimizer.step()
        return [early.tolist(), late.tolist()]

    fused, plain = steps(fused=True), steps(fused=False)
    assert fused == [pytest.approx(one) for one in plain]
    assert fused[1] != [1.0, -2.0]
