import pytest
import torch
from torch import nn

from models import ENCODERS, build_encoder, projection_head


def _parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize(
    ("name", "channels", "expected"),
    [
        # Weights and biases by layer: 6 filters of C x 5 x 5, 16 of 6 x 5 x 5, 120 of 16 x 5 x 5, 120 -> 84.
        ("lenet5", 1, (25 + 1) * 6 + (150 + 1) * 16 + (400 + 1) * 120 + (120 + 1) * 84),
        ("lenet5", 3, (75 + 1) * 6 + (150 + 1) * 16 + (400 + 1) * 120 + (120 + 1) * 84),
        # Bias-free 3 x 3 filters C-32-64-64, each followed by a batch norm's scale and shift.
        ("small-conv", 1, 9 * 1 * 32 + 9 * 32 * 64 + 9 * 64 * 64 + 2 * (32 + 64 + 64)),
        ("small-conv", 3, 9 * 3 * 32 + 9 * 32 * 64 + 9 * 64 * 64 + 2 * (32 + 64 + 64)),
    ],
)
def test_the_parameters_are_those_counted_by_hand(name: str, channels: int, expected: int) -> None:
    assert _parameters(build_encoder(name, channels, ENCODERS[name].image_size or 8)) == expected


def test_lenet5_on_colour_images_has_61156_parameters() -> None:
    assert _parameters(build_encoder("lenet5", 3, 32)) == 61_156


@pytest.mark.parametrize("name", list(ENCODERS))
@pytest.mark.parametrize("channels", [1, 3])
def test_features_are_as_wide_as_the_encoder_says(name: str, channels: int) -> None:
    sizes = [ENCODERS[name].image_size] if ENCODERS[name].image_size else [8, 13, 32]
    for size in sizes:
        encoder = build_encoder(name, channels, size)
        features = encoder(torch.rand(5, channels, size, size))
        assert features.shape == (5, encoder.width)


def test_lenet5_features_are_bounded_by_its_last_tanh() -> None:
    with torch.no_grad():
        features = build_encoder("lenet5", 1, 32)(100 * torch.rand(4, 1, 32, 32))
    assert float(features.abs().max()) <= 1


def test_every_layer_of_an_encoder_is_used() -> None:
    for name, spec in ENCODERS.items():
        size = spec.image_size or 8
        encoder = build_encoder(name, 3, size)
        encoder(torch.rand(4, 3, size, size)).square().sum().backward()
        assert all(p.grad is not None and bool(p.grad.any()) for p in encoder.parameters()), name


def test_an_encoder_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="'lenet5' takes 32 x 32 images, not 28 x 28"):
        build_encoder("lenet5", 1, 28)
    with pytest.raises(ValueError, match="unknown encoder 'lenet'; known: lenet5, small-conv"):
        build_encoder("lenet", 1, 32)


def test_the_head_is_bias_free_and_ends_in_a_batch_norm_without_scale() -> None:
    head = projection_head(84, 50, 128)
    assert _parameters(head) == 84 * 50 + 2 * 50 + 50 * 128
    outputs = head(torch.randn(40, 84) * 7 + 3)
    assert outputs.shape == (40, 128)
    torch.testing.assert_close(outputs.mean(dim=0), torch.zeros(128), atol=1e-5, rtol=0)
    torch.testing.assert_close(outputs.var(dim=0, correction=0), torch.ones(128), atol=1e-2, rtol=0)
