"""Exported encoders: the example of each format loads the files and gives our features."""

import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torchvision.transforms.v2.functional import to_pil_image

from contrasweep.data import normalise, whole_image
from contrasweep.data.decoding import fit_square
from contrasweep.models import build_encoder, encoder_bytes, read_encoder
from contrasweep.models.encoders.encoder import Encoder
from contrasweep.models.encoders.multiview import build_multiview_encoder
from contrasweep.models.export import multiview_encoder_bytes
from contrasweep.models.formats import FORMATS, Network, NotOffered, Package, network_of
from contrasweep.models.formats.as_timm import timm_config

READERS = {"torchvision": "torchvision", "timm": "timm", "hf": "transformers", "onnx": "onnxruntime"}
MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.3, 0.25)


def trained(
    name: str, channels: int = 3, size: int = 32, mean: Any = (), std: Any = (), centre: float = 1.0
) -> Network:
    """Return the network of an encoder file; its batch statistics are not those of a new one."""
    torch.manual_seed(0)
    encoder = build_encoder(name, channels, size, mean, std).train()
    with torch.no_grad():
        encoder(torch.rand(8, channels, size, size))
    content = encoder_bytes(encoder, name=name, channels=channels, image_size=size, mean=mean, std=std)
    return network_of(read_encoder(content, "a file"), centre)


def features_of(package: Package, folder: Path, images: Tensor, monkeypatch: pytest.MonkeyPatch) -> Tensor:
    """Write the files and run the example among them."""
    folder.mkdir()
    for name, content in package.files.items():
        (folder / name).write_bytes(content)
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"images": images}
    exec(compile(package.example, "example", "exec"), names)
    return torch.as_tensor(names["features"])


def ours(encoder: Encoder, images: Tensor) -> Tensor:
    with torch.no_grad():
        return encoder(images)


@pytest.mark.parametrize(
    ("form", "name", "channels", "mean", "std"),
    [
        ("torchvision", "resnet18", 3, MEAN, STD),
        ("torchvision", "resnet50", 1, (), ()),
        ("torchvision", "resnet18-cifar", 3, (0.5,), (0.2,)),
        ("torchvision", "torchvision:mobilenet_v3_small", 1, MEAN[:1], STD[:1]),
        ("timm", "resnet18", 3, MEAN, STD),
        ("timm", "timm:vit_tiny_patch16_224", 3, MEAN, STD),
        ("hf", "resnet18", 3, MEAN, STD),
        ("hf", "resnet50", 1, (), ()),
        ("hf", "timm:vit_tiny_patch16_224", 1, (), ()),
        ("onnx", "small-conv", 3, MEAN, STD),
    ],
)
def test_the_example_gives_our_features(
    form: str,
    name: str,
    channels: int,
    mean: Any,
    std: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip(READERS[form])
    network = trained(name, channels, mean=mean, std=std)
    package = FORMATS[form].write(network)
    assert len(package.example.splitlines()) <= 16
    images = torch.rand(5, channels, 32, 32)
    found = features_of(package, tmp_path / "out", images, monkeypatch)
    expected = ours(network.encoder, images)
    assert found.shape == expected.shape
    # An ONNX runtime adds in another order.
    limit = 1e-5 if form == "onnx" else 1e-6
    torch.testing.assert_close(found, expected, rtol=limit, atol=limit)


def test_timm_loads_the_folder_itself(tmp_path: Path) -> None:
    timm = pytest.importorskip("timm")
    network = trained("resnet18", 1, mean=(0.5,), std=(0.2,))
    for name, content in FORMATS["timm"].write(network).files.items():
        (tmp_path / name).write_bytes(content)
    model = timm.create_model(f"local-dir:{tmp_path}", pretrained=True).eval()
    images = torch.rand(3, 1, 32, 32)
    torch.testing.assert_close(model((images - 0.5) / 0.2), network.encoder(images), rtol=1e-6, atol=1e-6)
    assert (model.pretrained_cfg["mean"], model.pretrained_cfg["std"]) == ([0.5], [0.2])


@pytest.mark.parametrize(
    ("form", "centre"),
    # Centres with an even margin: else the crops of a photograph may lie a pixel beside each other.
    [("timm", 1.0), ("timm", 0.8), ("timm", 0.9), ("hf", 1.0), ("hf", 0.8)],
)
def test_the_library_prepares_a_photograph_as_we_do(form: str, centre: float, tmp_path: Path) -> None:
    """Its shorter side is resized and the centre cut out: squeezed, the features would be others."""
    pytest.importorskip(READERS[form])
    network = trained("resnet18", 3, 32, MEAN, STD, centre)
    for name, content in FORMATS[form].write(network).files.items():
        (tmp_path / name).write_bytes(content)
    levels = torch.randint(256, (3, 80, 160), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    theirs = _prepared(form, tmp_path, to_pil_image(levels))
    stored = fit_square(levels, round(32 / centre))
    expected = normalise(whole_image(stored[None], 32, centre=centre), MEAN, STD)
    # Pillow resizes whole levels, so it rounds.
    torch.testing.assert_close(theirs, expected, rtol=0, atol=1.5 / 255 / min(STD))


@pytest.mark.parametrize("form", ["timm", "hf"])
def test_the_library_leaves_a_grey_photograph_grey(form: str, tmp_path: Path) -> None:
    pytest.importorskip(READERS[form])
    network = trained("resnet18", 1, 32, MEAN[:1], STD[:1])
    for name, content in FORMATS[form].write(network).files.items():
        (tmp_path / name).write_bytes(content)
    levels = torch.randint(256, (1, 32, 32), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    expected = normalise(whole_image(levels[None], 32), MEAN[:1], STD[:1])
    torch.testing.assert_close(_prepared(form, tmp_path, to_pil_image(levels)), expected)


def test_timm_which_rounds_down_resizes_to_as_many_pixels_as_we() -> None:
    network = trained("resnet18")
    for size, centre in product(range(8, 600), (0.5, 0.66, 0.875, 0.9, 1.0)):
        shown = replace(network, size=size, centre=centre)
        share = timm_config(shown, "timm")["pretrained_cfg"]["crop_pct"]
        assert math.floor(size / share) == shown.resized


def _prepared(form: str, folder: Path, image: Any) -> Tensor:
    """Return the image as the library prepares it, by nothing but the files."""
    if form == "timm":
        import timm

        model = timm.create_model(f"local-dir:{folder}", pretrained=False)
        options = timm.data.resolve_model_data_config(model)
        return timm.data.create_transform(**options, is_training=False)(image)[None]
    from transformers import AutoImageProcessor

    return AutoImageProcessor.from_pretrained(folder)(image, return_tensors="pt")["pixel_values"]


@pytest.mark.parametrize(
    ("form", "name", "says"),
    [
        ("timm", "resnet18-cifar", "timm has no ResNet with the CIFAR stem.*--format torchvision"),
        ("hf", "resnet18-cifar", "transformers has no ResNet with the CIFAR stem"),
        ("timm", "lenet5", "timm has no network lenet5; --format onnx"),
        ("torchvision", "lenet5", "torchvision has no network lenet5; --format onnx"),
    ],
)
def test_a_network_that_the_library_lacks_is_refused(form: str, name: str, says: str) -> None:
    network = trained(name)
    with pytest.raises(NotOffered, match=says):
        FORMATS[form].write(network)


def test_without_onnx_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    network = trained("small-conv")
    monkeypatch.setattr("contrasweep.models.formats.as_onnx.find_spec", lambda name: None)
    with pytest.raises(NotOffered, match=r"pip install 'contrasweep\[onnx\]'"):
        FORMATS["onnx"].write(network)


def test_encoders_of_several_views_are_refused() -> None:
    views = ((7,), (5,))
    encoder = build_multiview_encoder("herocon-mlp", views)
    content = multiview_encoder_bytes(encoder, name="herocon-mlp", views=views)
    with pytest.raises(NotOffered, match="encodes several views"):
        network_of(read_encoder(content, "a file"))


def test_every_format_names_what_reads_it() -> None:
    assert list(FORMATS) == list(READERS)
    assert all(READERS[name] in form.reader for name, form in FORMATS.items())
