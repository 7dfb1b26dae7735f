"""Encoders of several views: each encodes its own view, and a file restores all of them."""

from pathlib import Path

import pytest
import torch

from contrasweep.models import load_encoder
from contrasweep.models.encoders.multiview import MultiViewEncoder, build_multiview_encoder
from contrasweep.models.export import multiview_encoder_bytes


def test_vectors_of_different_widths_are_joined() -> None:
    encoder = build_multiview_encoder("herocon-mlp", [(7,), (3,)]).eval()
    views = [torch.rand(5, 7), torch.rand(5, 3)]
    joined = encoder(views)
    assert joined.shape == (5, encoder.width)
    first, second = encoder.by_view(views)
    assert torch.equal(joined, torch.cat([first, second], dim=1))
    assert torch.equal(first, encoder.encoders[0](views[0]))


def test_encoders_share_nothing() -> None:
    encoder = build_multiview_encoder("herocon-mlp", [(4,), (4,)])
    first, second = (set(map(id, own.parameters())) for own in encoder.encoders)
    assert first
    assert not first & second
    assert len(list(encoder.parameters())) == len(first) + len(second)


def test_one_view_for_each_encoder() -> None:
    encoder = build_multiview_encoder("herocon-mlp", [(4,), (4,)])
    with pytest.raises(ValueError, match="2 views are needed, got 1"):
        encoder([torch.rand(2, 4)])


@pytest.mark.parametrize(
    ("name", "views"), [("herocon-mlp", [(6,), (2,)]), ("herocon-cnn", [(1, 8, 8), (1, 8, 8)])]
)
def test_a_file_gives_them_back(name: str, views: list[tuple[int, ...]], tmp_path: Path) -> None:
    encoder = build_multiview_encoder(name, views).eval()
    (tmp_path / "encoder.safetensors").write_bytes(multiview_encoder_bytes(encoder, name=name, views=views))
    loaded = load_encoder(tmp_path / "encoder.safetensors")
    assert isinstance(loaded, MultiViewEncoder)
    inputs = [torch.rand(3, *shape) for shape in views]
    with torch.no_grad():
        assert torch.equal(loaded(inputs), encoder(inputs))
