from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from contrasweep.data import whole_image
from contrasweep.models import (
    ENCODERS,
    Encoder,
    EncoderSpec,
    build_encoder,
    encoder_bytes,
    load_encoder,
)
from contrasweep.models.encoders.inputs import ImageInput
from contrasweep.models.encoders.multiview import build_multiview_encoder
from contrasweep.models.encoders.registry import ENCODER_REGISTRY
from contrasweep.models.export import multiview_encoder_bytes, read_encoder


@pytest.mark.parametrize("name", list(ENCODERS))
def test_a_saved_encoder_gives_the_same_features(name: str, tmp_path: Path) -> None:
    size = ENCODERS[name].image_size or max(8, ENCODERS[name].smallest_image)
    encoder = build_encoder(name, 3, size)
    encoder(torch.rand(4, 3, size, size))  # batch norm now has statistics of its own
    path = tmp_path / "encoder.safetensors"
    path.write_bytes(encoder_bytes(encoder, name=name, channels=3, image_size=size, experiment='{"seed": 5}'))
    state = torch.random.get_rng_state()
    loaded = load_encoder(path)
    assert torch.equal(torch.random.get_rng_state(), state)
    images = torch.rand(3, 3, size, size)
    assert all(parameter.requires_grad for parameter in loaded.parameters())
    assert not loaded.training
    assert loaded.width == encoder.width
    with torch.no_grad():
        assert torch.equal(loaded(images), encoder.eval()(images))
    with safe_open(path, framework="pt") as file:
        assert file.metadata()["experiment"] == '{"seed": 5}'


def test_an_encoder_that_normalises_its_images_does_so_when_it_is_read_back(tmp_path: Path) -> None:
    mean, std = (0.1, 0.5, 0.9), (0.2, 0.25, 0.5)
    encoder = build_encoder("small-conv", 3, 8, mean, std)
    path = tmp_path / "encoder.safetensors"
    path.write_bytes(encoder_bytes(encoder, name="small-conv", channels=3, image_size=8, mean=mean, std=std))
    images = torch.rand(3, 3, 8, 8)
    with torch.no_grad():
        assert torch.equal(load_encoder(path)(images), encoder.eval()(images))


def test_equal_encoders_have_equal_files() -> None:
    """An experiment that starts from such a file knows it by its SHA-256, also after it was made again."""
    encoder = build_encoder("small-conv", 3, 8)
    made = [encoder_bytes(encoder, name="small-conv", channels=3, image_size=8) for _ in range(20)]
    assert len(set(made)) == 1
    assert (8 + int.from_bytes(made[0][:8], "little")) % 8 == 0


def test_the_layout_in_memory_does_not_matter(tmp_path: Path) -> None:
    encoder = build_encoder("small-conv", 3, 8)
    plain, last = tmp_path / "plain.safetensors", tmp_path / "last.safetensors"
    plain.write_bytes(encoder_bytes(encoder, name="small-conv", channels=3, image_size=8))
    encoder = encoder.to(memory_format=torch.channels_last)
    last.write_bytes(encoder_bytes(encoder, name="small-conv", channels=3, image_size=8))
    images = torch.rand(4, 3, 8, 8)
    with torch.no_grad():
        assert torch.equal(load_encoder(plain)(images), load_encoder(last)(images))


def test_what_is_no_encoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent\.safetensors"):
        load_encoder(tmp_path / "absent.safetensors")
    other = tmp_path / "other.safetensors"
    save_file({"weight": torch.zeros(2)}, other)
    with pytest.raises(ValueError, match=r"other\.safetensors is not an encoder"):
        load_encoder(other)


@pytest.fixture
def read_back(tmp_path: Path) -> Encoder:
    path = tmp_path / "encoder.safetensors"
    path.write_bytes(
        encoder_bytes(build_encoder("small-conv", 3, 8), name="small-conv", channels=3, image_size=8)
    )
    return load_encoder(path)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (torch.zeros(2, 3, 8, 8, dtype=torch.uint8), r"given torch.uint8: divide by 255"),
        (
            torch.full((2, 3, 8, 8), 255.0),
            r"values in 0\.\.1, given values from 255 to 255: divide 8-bit values",
        ),
        (torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0)), r"do not normalise by a mean"),
        (torch.full((2, 3, 8, 8), torch.nan), r"given values from nan to nan"),
        (torch.zeros(3, 8, 8), r"floats \(B, 3, 8, 8\), given \(3, 8, 8\)"),
        (torch.zeros(2, 1, 8, 8), r"given \(2, 1, 8, 8\)"),
        (torch.zeros(2, 3, 16, 16), r"given \(2, 3, 16, 16\)"),
        ([[0.0]], r"takes a tensor of floats \(B, 3, 8, 8\), given list"),
    ],
    ids=["uint8", "0..255", "normalised", "nan", "one image", "grey", "size", "list"],
)
def test_an_encoder_from_a_file_refuses_what_would_give_garbage(
    read_back: Encoder, images: object, message: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        read_back(images)


def test_an_encoder_from_a_file_takes_what_the_library_prepares(read_back: Encoder) -> None:
    photos = torch.randint(0, 256, (2, 3, 20, 30), dtype=torch.uint8)
    assert read_back.takes == ImageInput(channels=3, size=8)
    with torch.no_grad():
        assert read_back(whole_image(photos, 8)).shape == (2, read_back.width)
        assert read_back(torch.zeros(0, 3, 8, 8)).shape == (0, read_back.width)


def test_the_encoders_of_several_views_refuse_other_views(tmp_path: Path) -> None:
    path = tmp_path / "encoder.safetensors"
    encoder = build_multiview_encoder("herocon-mlp", [(3,), (5,)])
    path.write_bytes(multiview_encoder_bytes(encoder, name="herocon-mlp", views=[(3,), (5,)]))
    loaded, views = load_encoder(path), [torch.zeros(2, 3), torch.zeros(2, 5)]
    assert loaded(views).shape == (2, loaded.width)
    for wrong, message in (
        (views[:1], "2 views, given 1"),
        (views[0], "2 views, given one Tensor"),
        (views[::-1], r"floats \(B, 3\), given \(2, 5\)"),
        ([view.long() for view in views], r"given torch.int64: call .float\(\)"),
    ):
        with pytest.raises(ValueError, match=message):
            loaded(wrong)


@pytest.mark.parametrize("content", [b"", b"garbage", b"PK\x03\x04" + bytes(100)])
def test_a_file_of_another_format_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "broken.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"broken\.safetensors is not"):
        load_encoder(path)


def test_the_network_of_a_plug_in_that_is_not_installed_is_told() -> None:
    content = encoder_bytes(build_encoder("lenet5", 3, 32), name="of-a-plug-in", channels=3, image_size=32)
    with pytest.raises(ValueError, match=r"built here: unknown encoder 'of-a-plug-in'.*install its package"):
        read_encoder(content, "encoder.safetensors")


def test_a_network_that_has_changed_since_is_told_in_a_line() -> None:
    content = encoder_bytes(build_encoder("resnet18", 3, 32), name="small-conv", channels=3, image_size=32)
    with pytest.raises(
        ValueError, match="the file has other weights than the network small-conv here: missing"
    ) as refused:
        read_encoder(content, "encoder.safetensors")
    assert len(str(refused.value)) < 600


class Tied(nn.Module):
    """Two layers with one weight, and a buffer that is a part of another."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.register_buffer("scales", torch.arange(4.0))
        self.register_buffer("first_scales", self.scales[:2])

    def forward(self, images: Tensor) -> Tensor:
        return self.second(self.first(images.flatten(1)))


def test_tensors_that_share_memory_are_written_each(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = EncoderSpec("tied", "", None, lambda channels, size: Encoder(Tied(), 4))
    monkeypatch.setitem(ENCODER_REGISTRY._items, "tied", spec)
    encoder = spec.build(1, 2)
    read = read_encoder(encoder_bytes(encoder, name="tied", channels=1, image_size=2), "a file").encoder
    images = torch.rand(3, 1, 2, 2)
    with torch.no_grad():
        assert torch.equal(read(images), encoder(images))
