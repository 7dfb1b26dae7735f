"""Encoders against their architecture, which is written out by hand."""

import warnings

import pytest
import torch
from torch import nn

from contrasweep.models import ENCODERS, VECTOR_ENCODERS, build_encoder, build_vector_encoder
from contrasweep.models.encoders.bagnet import PatchBlock


def _parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _unfilled(name: str, channels: int, size: int) -> nn.Module:
    """Return the encoder without memory for its weights."""
    with torch.device("meta"):
        return build_encoder(name, channels, size)


def _size(name: str) -> int:
    return ENCODERS[name].image_size or max(8, ENCODERS[name].smallest_image)


def _conv(inputs: int, outputs: int, kernel: int = 3, bias: bool = False) -> int:
    return (inputs * kernel**2 + bias) * outputs


def _resnet50_blocks() -> int:
    """Count the parameters: per block a 1 x 1, a 3 x 3 and a 1 x 1 convolution (4 x as wide); batch norms."""
    total, inputs = 0, 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        total += _conv(inputs, 4 * width, 1) + 2 * 4 * width  # the first shortcut of a stage
        for _ in range(blocks):
            total += _conv(inputs, width, 1) + _conv(width, width) + _conv(width, 4 * width, 1)
            total += 2 * (width + width + 4 * width)
            inputs = 4 * width
    return total


def _resnet18_blocks() -> int:
    """Count the parameters: per stage two blocks of two 3 x 3 convolutions; shortcuts at new widths."""
    total, inputs = 0, 64
    for width in (64, 128, 256, 512):
        total += _conv(inputs, width) + 3 * _conv(width, width) + 4 * 2 * width
        total += (_conv(inputs, width, 1) + 2 * width) * (inputs != width)
        inputs = width
    return total


def _bagnet18() -> int:
    total = _conv(3, 64, 1) + _conv(64, 64) + 2 * 64
    total += _conv(64, 64) + 3 * _conv(64, 64, 1) + 4 * 2 * 64 + _conv(64, 64, 1) + 2 * 64
    for inputs, width in ((64, 128), (128, 256), (256, 512)):
        total += _conv(inputs, width, 1) + 3 * _conv(width, width, 1) + 4 * 2 * width
        total += _conv(inputs, width, 1) + 2 * width
    return total


def _vgg(size: int) -> int:
    widths = (32, 32, 32, 32, 32, 32, 32, 64, 64, 64, 128, 128, 128)
    total = sum(_conv(i, o, bias=True) + 2 * o for i, o in zip((3, *widths), widths, strict=False))
    return total + (128 * (size // 32) ** 2 + 1) * 512 + 2 * 512


ALEXNET = sum(_conv(i, o) + 2 * o for i, o in ((3, 96), (96, 192), (192, 384), (384, 384), (384, 192)))


@pytest.mark.parametrize(
    ("name", "channels", "size", "expected"),
    [
        # Weights and biases by layer: 6 filters of C x 5 x 5, 16 of 6 x 5 x 5, 120 of 16 x 5 x 5, 120 -> 84.
        ("lenet5", 1, 32, (25 + 1) * 6 + (150 + 1) * 16 + (400 + 1) * 120 + (120 + 1) * 84),
        ("lenet5", 3, 32, (75 + 1) * 6 + (150 + 1) * 16 + (400 + 1) * 120 + (120 + 1) * 84),
        ("lenet5-linear", 3, 32, (75 + 1) * 6 + (150 + 1) * 16 + (400 + 1) * 120 + (120 + 1) * 84),
        # Bias-free 3 x 3 filters C-32-64-64, each followed by a batch norm's scale and shift.
        ("small-conv", 1, 8, 9 * 1 * 32 + 9 * 32 * 64 + 9 * 64 * 64 + 2 * (32 + 64 + 64)),
        ("small-conv", 3, 8, 9 * 3 * 32 + 9 * 32 * 64 + 9 * 64 * 64 + 2 * (32 + 64 + 64)),
        # 7 x 7 filters with bias, C-16-32-64-128, and batch norms.
        (
            "simple-conv",
            3,
            28,
            (49 * 3 + 1) * 16
            + (49 * 16 + 1) * 32
            + (49 * 32 + 1) * 64
            + (49 * 64 + 1) * 128
            + 2 * (16 + 32 + 64 + 128),
        ),
        # 32 -> 15 -> 7 -> 3 and 64 -> 31 -> 15 -> 7 pixels through the poolings.
        ("small-alexnet", 3, 32, ALEXNET + 192 * 3 * 3 * 4096 + 4096 * 4096 + 4 * 4096),
        ("small-alexnet", 3, 64, ALEXNET + 192 * 7 * 7 * 4096 + 4096 * 4096 + 4 * 4096),
        ("resnet18", 3, 32, _conv(3, 64, 7) + 2 * 64 + _resnet18_blocks()),
        ("resnet50", 1, 32, _conv(1, 64, 7) + 2 * 64 + _resnet50_blocks()),
        ("resnet18-cifar", 1, 32, _conv(1, 64) + 2 * 64 + _resnet18_blocks()),
        ("resnet50-cifar", 3, 32, _conv(3, 64) + 2 * 64 + _resnet50_blocks()),
        # 28 -> 13 pixels through the pooling.
        ("herocon-cnn", 1, 28, 10 * 32 + 289 * 32 + 4 * 32 + (32 * 13 * 13 + 1) * 512 + 2 * 512),
        ("herocon-vgg", 3, 64, _vgg(64)),
        ("bagnet18", 3, 32, _bagnet18()),
        (
            "simple-conv-1x1",
            3,
            8,
            sum(i * o + o + 2 * o for i, o in ((3, 16), (16, 32), (32, 64), (64, 128))),
        ),
    ],
)
def test_the_parameters_are_those_counted_by_hand(name: str, channels: int, size: int, expected: int) -> None:
    assert _parameters(_unfilled(name, channels, size)) == expected


def test_known_totals() -> None:
    assert _parameters(_unfilled("lenet5", 3, 32)) == 61_156
    # torchvision's documented totals, less the classifiers of 1,000 classes.
    assert _parameters(_unfilled("resnet18", 3, 32)) == 11_689_512 - 513_000
    assert _parameters(_unfilled("resnet50", 3, 32)) == 25_557_032 - 2_049_000


def test_the_two_simple_convs_differ_in_their_last_activation() -> None:
    relu, tanh = (build_encoder(name, 3, 28) for name in ("simple-conv-relu", "simple-conv"))
    relu.load_state_dict(tanh.state_dict())
    images = torch.randn(4, 3, 28, 28)
    assert relu(images).min() >= 0
    assert tanh(images).abs().max() <= 1
    before = tanh.body[:-3](images)  # without the activation and the average
    torch.testing.assert_close(relu(images), before.clamp_min(0).mean((2, 3)))
    torch.testing.assert_close(tanh(images), before.tanh().mean((2, 3)))


@pytest.mark.parametrize("name", ["lenet5", "small-conv"])
def test_stored_encoders_still_fit(name: str) -> None:
    named = {
        "lenet5": "body.0 body.3 body.6 body.9",
        "small-conv": "body.0 body.1 body.3 body.4 body.7 body.8",
    }
    encoder = build_encoder(name, 3, _size(name))
    layers = {key.rsplit(".", 1)[0] for key, _ in encoder.named_parameters()}
    assert layers == set(named[name].split())


@pytest.mark.parametrize("name", list(ENCODERS))
def test_features_are_as_wide_as_the_encoder_says(name: str) -> None:
    for channels, size in ((1, _size(name)), (3, ENCODERS[name].image_size or 33)):
        encoder = build_encoder(name, channels, size)
        features = encoder(torch.rand(2, channels, size, size))
        assert features.shape == (2, encoder.width)


@pytest.mark.parametrize("name", list(ENCODERS))
def test_the_smallest_image_is_the_smallest(name: str) -> None:
    smallest = ENCODERS[name].image_size or ENCODERS[name].smallest_image
    with torch.device("meta"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Initializing zero-element tensors")
        encoder = build_encoder(name, 3, smallest).eval()
        assert encoder(torch.rand(2, 3, smallest, smallest)).shape == (2, encoder.width)
        with pytest.raises((RuntimeError, ValueError)):
            ENCODERS[name].build(3, smallest - 1)(torch.rand(2, 3, smallest - 1, smallest - 1))


@pytest.mark.parametrize("name", list(ENCODERS))
def test_every_layer_of_an_encoder_is_used(name: str) -> None:
    encoder = build_encoder(name, 3, _size(name))
    features = encoder(torch.rand(4, 3, _size(name), _size(name)))
    # The loss uses random directions, because a final batch norm makes the sum of squares constant.
    (features * torch.randn(features.shape)).sum().backward()
    # A batch norm removes the bias before it, so the gradient of that bias is nothing but rounding.
    assert all(p.grad is not None and bool(p.grad.any() or p.ndim == 1) for p in encoder.parameters())


@pytest.mark.parametrize("name", ["lenet5", "simple-conv"])
def test_features_are_bounded_by_the_last_tanh(name: str) -> None:
    with torch.no_grad():
        features = build_encoder(name, 1, 32).eval()(100 * torch.rand(4, 1, 32, 32))
    assert float(features.abs().max()) <= 1
    assert float(features.min()) < 0


def test_the_released_lenet5_is_linear_in_its_last_layer() -> None:
    # CCL-K's models/lenet.py: three activations, none after L1. So tanh of it is the other LeNet-5.
    encoder = build_encoder("lenet5-linear", 3, 32).eval()
    bounded = build_encoder("lenet5", 3, 32).eval()
    images = torch.rand(4, 3, 32, 32)
    with torch.no_grad():
        encoder.get_parameter("body.9.bias").add_(2)
        assert float(encoder(images).max()) > 1
        bounded.load_state_dict(encoder.state_dict())
        torch.testing.assert_close(bounded(images), encoder(images).tanh())


def test_small_alexnet_starts_as_published_and_ends_in_a_relu() -> None:
    encoder = build_encoder("small-alexnet", 3, 15)
    weights = [p.detach() for p in encoder.parameters() if p.ndim > 1]
    assert len(weights) == 7
    for weight in weights[1:]:
        assert float(weight.std()) == pytest.approx(0.02, rel=0.02)
    with torch.no_grad():
        assert float(encoder(torch.rand(4, 3, 15, 15)).min()) == 0


@pytest.mark.parametrize("depth", [18, 50])
def test_the_stems_differ_by_four_in_pixels(depth: int) -> None:
    shapes = {}
    for name in (f"resnet{depth}", f"resnet{depth}-cifar"):
        body = build_encoder(name, 3, 32).body.eval()
        assert isinstance(body.layer4, nn.Module)
        body.layer4.register_forward_hook(
            lambda _, __, out, name=name: shapes.__setitem__(name, out.shape[-1])
        )
        with torch.no_grad():
            body(torch.rand(1, 3, 32, 32))
    assert shapes == {f"resnet{depth}": 1, f"resnet{depth}-cifar": 4}


def test_both_paths_of_a_bagnet_block_start_at_the_same_corner() -> None:
    block, features = PatchBlock(2, 4, kernel_size=3, stride=2).eval(), torch.rand(1, 2, 8, 8)
    nn.init.zeros_(block.get_submodule("residual.4").weight)  # type: ignore[arg-type]
    assert torch.equal(block(features), block.shortcut(features).relu()[:, :, :3, :3])


def test_a_place_of_bagnet_sees_five_by_five_pixels() -> None:
    encoder = build_encoder("bagnet18", 1, 37).eval()
    assert isinstance(encoder.body, nn.Sequential)
    images = torch.rand(1, 1, 37, 37, requires_grad=True)
    places = encoder.body[:-2](images)
    assert places.shape == (1, 512, 5, 5)
    places[0, :, 2, 3].sum().backward()
    assert images.grad is not None
    seen = images.grad[0, 0].nonzero()
    assert (seen.max(dim=0).values - seen.min(dim=0).values + 1).tolist() == [5, 5]
    assert seen.min(dim=0).values.tolist() == [16, 24]


def test_herocon_encoders_end_in_batch_norm() -> None:
    vectors = build_vector_encoder("herocon-mlp", 9)(torch.randn(50, 9))
    images = build_encoder("herocon-cnn", 1, 8)(torch.rand(50, 1, 8, 8))
    for features in (vectors, images):
        torch.testing.assert_close(features.mean(dim=0), torch.zeros(features.shape[1]), atol=1e-4, rtol=0)


def test_the_encoder_of_vectors_by_hand() -> None:
    encoder = build_vector_encoder("herocon-mlp", 294)
    assert _parameters(encoder) == (294 + 1) * 200 + (200 + 1) * 200 + 4 * 200
    assert encoder(torch.rand(3, 294)).shape == (3, encoder.width) == (3, 200)


def test_names_of_images_and_vectors_differ() -> None:
    assert not set(ENCODERS) & set(VECTOR_ENCODERS)


def test_an_encoder_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="'lenet5' takes 32 x 32 images, not 28 x 28"):
        build_encoder("lenet5", 1, 28)
    with pytest.raises(ValueError, match="'small-alexnet' takes images from 15 x 15 on, not 8 x 8"):
        build_encoder("small-alexnet", 3, 8)
    with pytest.raises(
        ValueError, match=r"unknown encoder 'lenet'\. Did you mean 'lenet5'\? Known: lenet5, lenet5-linear"
    ):
        build_encoder("lenet", 1, 32)
    with pytest.raises(
        ValueError, match=r"unknown vector encoder 'herocon-cnn'\. Did you mean 'herocon-mlp'"
    ):
        build_vector_encoder("herocon-cnn", 3)
    with pytest.raises(ValueError, match="width_in = 0"):
        build_vector_encoder("herocon-mlp", 0)


@pytest.mark.parametrize(("mean", "std"), [((0.1, 0.5, 0.9), (0.2, 0.25, 0.5)), ((0.5,), (0.25,))])
def test_an_encoder_normalises_its_images_channel_by_channel(
    mean: tuple[float, ...], std: tuple[float, ...]
) -> None:
    torch.manual_seed(0)
    plain = build_encoder("small-conv", 3, 8).eval()
    torch.manual_seed(0)
    normalising = build_encoder("small-conv", 3, 8, mean, std).eval()
    images = torch.rand(2, 3, 8, 8)
    shift, scale = (torch.tensor(values).view(1, -1, 1, 1) for values in (mean, std))
    assert torch.equal(normalising(images), plain((images - shift) / scale))
    assert not torch.equal(normalising(images), plain(images))
    weights = [tuple(weight.shape) for weight in plain.parameters()]
    assert [tuple(weight.shape) for weight in normalising.parameters()] == weights
    assert len(normalising.state_dict()) == len(plain.state_dict())
    halves = [one.body.get_submodule(one.middle or "") for one in (normalising, plain)]
    assert repr(halves[0]) == repr(halves[1]) != repr(plain.body)


@pytest.mark.parametrize(("mean", "std"), [((0.5, 0.5), (0.5, 0.5)), ((0.5,), ()), ((), (0.5,))])
def test_a_mean_that_does_not_fit_the_channels_is_refused(
    mean: tuple[float, ...], std: tuple[float, ...]
) -> None:
    with pytest.raises(ValueError, match="3 channels"):
        build_encoder("small-conv", 3, 8, mean, std)
