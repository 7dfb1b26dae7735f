"""Networks of torchvision and timm as encoders; timm's are tested where it is installed."""

import importlib.util
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from torch import Tensor, nn

from contrasweep.libraries import LIBRARIES, library_and_model
from contrasweep.models import build_encoder, check_images, check_two_sizes, encoder_bytes, load_encoder
from contrasweep.models.encoders import libraries
from contrasweep.models.encoders.meta_device import on_meta_device
from contrasweep.models.encoders.weights import load_weights, network_of, read_weights

needs_timm = pytest.mark.skipif(importlib.util.find_spec("timm") is None, reason="timm is not installed")

NETWORKS = [
    pytest.param("torchvision:squeezenet1_1", 32, 512),
    pytest.param("torchvision:mobilenet_v3_small", 33, 1024),
    pytest.param("timm:test_resnet", 32, 96, marks=needs_timm),
    pytest.param("timm:test_vit", 32, 64, marks=needs_timm),
    pytest.param("timm:test_efficientnet", 32, 256, marks=needs_timm),
]
"""Name, image size, width: small networks, one with attention, one with timm's batch norm and activation."""

each_network = pytest.mark.parametrize(("name", "size", "width"), NETWORKS)


@each_network
@pytest.mark.parametrize("channels", [1, 3])
def test_features_are_as_wide_as_the_encoder_says(name: str, size: int, width: int, channels: int) -> None:
    encoder = build_encoder(name, channels, size)
    assert encoder(torch.rand(2, channels, size, size)).shape == (2, encoder.width) == (2, width)


@each_network
def test_every_layer_learns_and_nothing_is_drawn(name: str, size: int, width: int) -> None:
    torch.manual_seed(0)
    encoder, images = build_encoder(name, 3, size), torch.rand(4, 3, size, size)
    with torch.no_grad():
        for weight in encoder.parameters():
            if weight.ndim == 1:
                weight.add_(0.1)  # some norms start at 0, and what is before them learns a step later
    state = torch.get_rng_state()
    features = encoder(images)
    assert torch.equal(torch.get_rng_state(), state)
    (features * torch.randn(features.shape)).sum().backward()
    assert all(weight.grad is not None for weight in encoder.parameters())
    assert all(bool(weight.grad.any()) for weight in encoder.parameters() if weight.ndim > 1)  # type: ignore[union-attr]


@needs_timm
def test_stochastic_depth_is_off() -> None:
    encoder, images = build_encoder("timm:fasternet_t1", 3, 32), torch.rand(2, 3, 32, 32)
    state = torch.get_rng_state()
    encoder(images)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_first_convolution_for_grey_images_differs_in_its_channels_alone() -> None:
    first = build_encoder("torchvision:squeezenet1_1", 3, 32).body.get_submodule("features.0")
    grey = build_encoder("torchvision:squeezenet1_1", 1, 32).body.get_submodule("features.0")
    assert repr(grey) == repr(first).replace("Conv2d(3,", "Conv2d(1,")
    assert isinstance(grey.bias, Tensor)


def test_a_network_with_a_version_number_beside_its_tensors_is_read_again(tmp_path: Path) -> None:
    encoder = build_encoder("torchvision:mnasnet0_5", 3, 32)
    saved, weights = tmp_path / "encoder.safetensors", tmp_path / "weights.pt"
    saved.write_bytes(encoder_bytes(encoder, name="torchvision:mnasnet0_5", channels=3, image_size=32))
    torch.save(network_of(encoder).state_dict(), weights)
    other = build_encoder("torchvision:mnasnet0_5", 3, 32)
    load_weights(other, read_weights(weights))
    for again in (load_encoder(saved), other):
        pairs = zip(again.state_dict().values(), encoder.state_dict().values(), strict=True)
        assert all(torch.equal(one, two) for one, two in pairs)


@each_network
def test_a_saved_encoder_gives_the_same_features(name: str, size: int, width: int, tmp_path: Path) -> None:
    encoder = build_encoder(name, 1, size, (0.5,), (0.25,))
    encoder(torch.rand(4, 1, size, size))
    path, images = tmp_path / "encoder.safetensors", torch.rand(3, 1, size, size)
    path.write_bytes(encoder_bytes(encoder, name=name, channels=1, image_size=size, mean=(0.5,), std=(0.25,)))
    with torch.no_grad():
        assert torch.equal(load_encoder(path)(images), encoder.eval()(images))
    with safe_open(path, framework="pt") as file:
        assert file.metadata()["library"].split()[0] == name.partition(":")[0]


@each_network
def test_the_start_depends_on_torch_s_seed_alone(name: str, size: int, width: int) -> None:
    starts = []
    for _ in range(2):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            starts.append(build_encoder(name, 3, size).state_dict())
        libraries.feature_width.cache_clear()
    one, other = starts
    assert all(torch.equal(value, other[key]) for key, value in one.items())


def test_the_names_of_published_weights_are_kept() -> None:
    from torchvision.models import mobilenet_v3_small

    with torch.device("meta"):
        whole = mobilenet_v3_small().state_dict()
    own = build_encoder("torchvision:mobilenet_v3_small", 3, 32).body.state_dict()
    assert set(whole) - set(own) == {"classifier.3.weight", "classifier.3.bias"}
    assert all(value.shape == whole[key].shape for key, value in own.items())


@pytest.mark.parametrize(
    ("name", "size", "width"),
    [
        ("torchvision:vit_b_16", 32, 768),
        ("torchvision:convnext_tiny", 32, 768),
        ("torchvision:regnet_y_400mf", 64, 440),
        ("torchvision:densenet121", 64, 1024),
        ("torchvision:swin_t", 64, 768),
        ("torchvision:googlenet", 64, 1024),
        ("torchvision:shufflenet_v2_x0_5", 32, 1024),
        ("torchvision:vgg11", 32, 4096),
        pytest.param("timm:vit_tiny_patch16_224", 48, 192, marks=needs_timm),
        pytest.param("timm:swin_tiny_patch4_window7_224", 64, 768, marks=needs_timm),
        pytest.param("timm:convnext_atto", 32, 320, marks=needs_timm),
        pytest.param("timm:fastvit_t8", 32, 768, marks=needs_timm),
    ],
)
def test_families_give_a_pooled_feature_at_a_size_of_one_s_own(name: str, size: int, width: int) -> None:
    """Known before a weight is made."""
    assert libraries.feature_width(name, 2, size) == width


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("torchvision:convnext_tinny", r"Did you mean 'torchvision:convnext_tiny'\? torchvision .* models"),
        ("tochvision:resnet18", r"unknown library 'tochvision'\. Did you mean 'torchvision'"),
        ("torchvision:", "names no model"),
        ("resnet19", r"unknown encoder 'resnet19'.*torchvision:MODEL, timm:MODEL"),
        ("vit", "not offered as a network of ours; give torchvision:MODEL or timm:MODEL"),
        pytest.param(
            "timm:vit_tinny_patch16_224", "Did you mean 'timm:vit_tiny_patch16_224'", marks=needs_timm
        ),
        pytest.param(
            "timm:vit_tiny_patch16_224.augreg_in21k",
            "the tag .* give timm:vit_tiny_patch16_224",
            marks=needs_timm,
        ),
        pytest.param("timm:qwen3_vit_88m_enc", "has no pooled feature", marks=needs_timm),
        pytest.param("timm:hf-hub:timm/vit_tiny_patch16_224", "unknown encoder", marks=needs_timm),
    ],
)
def test_a_name_that_does_not_exist_is_refused_with_the_nearest(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_images(name, 3, 128)


def test_images_that_a_network_does_not_take_are_refused_before_it_is_built() -> None:
    with pytest.raises(
        ValueError, match=r"'torchvision:vit_b_16' does not take 3 x 40 x 40 images: .*divisible"
    ):
        check_images("torchvision:vit_b_16", 3, 40)
    with pytest.raises(ValueError, match=r"alexnet' does not take 3 x 8 x 8 images"):
        check_images("torchvision:alexnet", 3, 8)
    with pytest.raises(ValueError, match="does not take 32 x 32 images and 16 x 16 ones at once"):
        check_two_sizes("torchvision:vit_b_16", 3, 32, 16)
    check_two_sizes("torchvision:squeezenet1_1", 3, 64, 32)


@needs_timm
def test_a_vision_transformer_of_timm_takes_local_crops_and_is_the_same_on_whole_images() -> None:
    import timm

    model = "vit_tiny_patch16_224"
    check_two_sizes(f"timm:{model}", 3, 64, 32)
    with pytest.raises(ValueError, match=r"64 x 64 images and 40 x 40 ones at once: .*divisible by patch"):
        check_two_sizes(f"timm:{model}", 3, 64, 40)
    encoder = build_encoder(f"timm:{model}", 3, 64).eval()
    published = timm.create_model(model, num_classes=0, img_size=64).eval()
    published.load_state_dict(encoder.body.state_dict())
    images = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(encoder(images), published(images))
        assert encoder(images[..., :32, :32]).shape == (2, 192)


@needs_timm
@pytest.mark.parametrize("name", ["timm:vit_tiny_patch16_224", "timm:mixer_s16_224"])
def test_pixels_beyond_the_last_patch_are_not_ignored_without_a_word(name: str) -> None:
    with pytest.raises(
        ValueError, match=r"3 x 40 x 40 images: its patches have 16 .* ignore the last 8; another"
    ):
        check_images(name, 3, 40)


def test_a_network_without_a_pooled_feature_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    maps = nn.Conv2d(3, 5, 3)
    monkeypatch.setattr(libraries, "_network", lambda *_: maps)
    for outputs in (maps, nn.LSTM(8, 8)):
        monkeypatch.setattr(libraries, "_network", lambda *_, one=outputs: one)
        libraries.feature_width.cache_clear()
        with pytest.raises(
            ValueError, match=r"no pooled feature.*\(5, 6, 6\)|does not take 3 x 8 x 8 images"
        ):
            check_images("torchvision:resnet18", 3, 8)
    libraries.feature_width.cache_clear()


def test_a_library_that_is_not_installed_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    encoder = build_encoder("torchvision:squeezenet1_1", 3, 32)
    path = tmp_path / "encoder.safetensors"
    path.write_bytes(encoder_bytes(encoder, name="torchvision:squeezenet1_1", channels=3, image_size=32))
    monkeypatch.setattr("contrasweep.libraries.find_spec", lambda _: None)
    libraries.check_model.cache_clear()
    libraries.feature_width.cache_clear()
    for name, install in LIBRARIES.items():
        with pytest.raises(ValueError, match=rf"needs {name}: pip install '{install}'".replace("[", r"\[")):
            library_and_model(f"{name}:resnet18")
    with pytest.raises(ValueError, match=r"encoder\.safetensors: encoder .* needs torchvision"):
        load_encoder(path)


def test_a_network_whose_widths_are_computed_is_built_and_then_emptied() -> None:
    class Computed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(int(torch.full((), 3.0).item()), 2)

    network = on_meta_device(Computed)
    assert network.layer.weight.is_meta
    assert not network.training
    libraries.feature_width.cache_clear()
    nested = on_meta_device(lambda: build_encoder("torchvision:regnet_y_400mf", 3, 64))
    assert all(weight.is_meta for weight in nested.parameters())
