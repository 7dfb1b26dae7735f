import pytest
import torch
from torch import Tensor, nn

from contrasweep.models import HEADS, build_encoder, build_head, projection_head
from contrasweep.models.branching import BranchingHead


def _parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_the_head_is_bias_free_and_ends_in_a_batch_norm_without_scale() -> None:
    head = projection_head(84, 50, 128)
    assert _parameters(head) == 84 * 50 + 2 * 50 + 50 * 128
    outputs = head(torch.randn(40, 84) * 7 + 3)
    assert outputs.shape == (40, 128)
    torch.testing.assert_close(outputs.mean(dim=0), torch.zeros(128), atol=1e-5, rtol=0)
    torch.testing.assert_close(outputs.var(dim=0, correction=0), torch.ones(128), atol=1e-2, rtol=0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cclk", 12 * 7 + 2 * 7 + 7 * 5),
        ("linear", (12 + 1) * 5),
        ("mlp", (12 + 1) * 7 + (7 + 1) * 5),
        ("mlp-bn", 12 * 7 + 2 * 7 + (7 + 1) * 5),
        ("mlp3", 12 * 7 + 2 * 7 + 7 * 7 + 2 * 7 + (7 + 1) * 5),
        ("none", 0),
    ],
)
def test_every_head_has_the_parameters_counted_by_hand(name: str, expected: int) -> None:
    head = build_head(name, 12, 7, 5)
    assert _parameters(head) == expected
    assert head(torch.randn(3, 12)).shape == (3, 12 if name == "none" else 5)


def test_the_heads_are_all_covered_above() -> None:
    assert set(HEADS) == {"cclk", "linear", "mlp", "mlp-bn", "mlp3", "none"}


def test_the_hidden_width_is_the_encoders_unless_given() -> None:
    assert [p.shape for p in build_head("mlp", 12).parameters() if p.ndim == 2] == [(12, 12), (128, 12)]


def _inner(head: nn.Sequential, inputs: Tensor) -> Tensor:
    outputs: Tensor = head[:-1](inputs)
    return outputs


@pytest.mark.parametrize("name", ["mlp", "mlp-bn", "mlp3"])
def test_an_mlp_ends_in_a_linear_layer_after_a_relu(name: str) -> None:
    head = build_head(name, 6, 4, 3)
    assert isinstance(head, nn.Sequential)
    hidden = _inner(head, torch.randn(50, 6)).detach()
    assert float(hidden.min()) == 0
    torch.testing.assert_close(head[-1](hidden), hidden @ head[-1].weight.T + head[-1].bias)


def test_the_linear_head_starts_as_small_alexnet_does() -> None:
    head = build_head("linear", build_encoder("small-alexnet", 3, 15).width, outputs=128)
    assert isinstance(head, nn.Linear)
    assert float(head.weight.detach().std()) == pytest.approx(0.02, rel=0.02)
    assert not head.bias.any()


def test_what_is_no_head_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"unknown head 'mlp2'\. Did you mean 'mlp'\? Known: cclk, linear, mlp"
    ):
        build_head("mlp2", 4)
    with pytest.raises(ValueError, match=r"widths must be at least 1.*outputs 0"):
        build_head("mlp", 4, 4, 0)


def test_a_branching_head_that_is_restored_has_its_groups() -> None:
    head, restored = BranchingHead(8, 3), BranchingHead(8, 3)
    head.part(1, torch.tensor([0, 1, 1]))
    restored.load_state_dict(head.state_dict())
    features = torch.randn(4, 8)
    assert torch.equal(restored(features), head(features))
