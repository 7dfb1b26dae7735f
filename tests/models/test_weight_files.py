"""Weights of files go into encoders whole, under the names that published files have, or not at all."""

import argparse
import hashlib
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from contrasweep.models import Encoder, build_encoder, encoder_bytes
from contrasweep.models.encoders.meta_device import on_meta_device
from contrasweep.models.encoders.weights import fitting, load_weights, network_of, read_weights

State = dict[str, Tensor]


def _source() -> Encoder:
    torch.manual_seed(1)
    encoder = build_encoder("resnet18-cifar", 3, 16)
    encoder(torch.rand(4, 3, 16, 16))  # batch norm now has statistics of its own
    return encoder


def _target(*normalisation: tuple[float, ...]) -> Encoder:
    torch.manual_seed(2)
    return build_encoder("resnet18-cifar", 3, 16, *normalisation)


def _prefixed(state: Mapping[str, Tensor], prefix: str) -> State:
    return {prefix + key: value for key, value in state.items()}


def _head(state: State) -> State:
    return {**state, "fc.weight": torch.zeros(10, 512), "fc.bias": torch.zeros(10)}


WRAPPINGS: dict[str, tuple[Callable[[State], Any], tuple[str, ...]]] = {
    "plain": (lambda state: state, ()),
    "classifier": (_head, ("left out fc.weight, fc.bias",)),
    "lightning": (
        lambda state: {"epoch": 3, "state_dict": _prefixed(_head(state), "backbone.")},
        ("'state_dict' unwrapped", "prefix 'backbone.' stripped", "left out fc.weight, fc.bias"),
    ),
    "torch's example": (
        lambda state: {
            "epoch": 90,
            "arch": "resnet18",
            "state_dict": _prefixed(_head(state), "module."),
            "best_acc1": torch.tensor(69.8),
        },
        ("'state_dict' unwrapped", "prefix 'module.' stripped", "left out fc.weight, fc.bias"),
    ),
    "parallel": (
        lambda state: {
            "model": {**_prefixed(state, "module.encoder."), "module.head.0.weight": torch.zeros(2)}
        },
        ("'model' unwrapped", "prefix 'module.encoder.' stripped", "left out module.head.0.weight"),
    ),
    "swav": (
        lambda state: {
            **_prefixed(state, "module."),
            "module.projection_head.0.weight": torch.zeros(2, 512),
            "module.prototypes.weight": torch.zeros(3, 2),
        },
        ("prefix 'module.' stripped", "left out projection_head.0.weight, prototypes.weight"),
    ),
    "dino": (
        lambda state: {
            "student": _prefixed({key: one + 1 for key, one in state.items()}, "module.backbone."),
            "teacher": {**_prefixed(state, "backbone."), "head.last_layer.weight": torch.zeros(3, 2)},
            "optimizer": {"state": {}, "param_groups": []},
            "epoch": 100,
            "args": argparse.Namespace(arch="resnet18", global_crops_scale=[0.14, 1.0]),
        },
        ("'teacher' unwrapped", "prefix 'backbone.' stripped", "left out head.last_layer.weight"),
    ),
    "old batch norms": (
        lambda state: {key: one for key, one in state.items() if "num_batches" not in key},
        (),
    ),
    "half precision": (lambda state: {key: one.double() for key, one in state.items()}, ()),
}


@pytest.mark.parametrize(
    ("wrapping", "normalisation"),
    [*((wrapping, ()) for wrapping in WRAPPINGS), ("lightning", ((0.5,), (0.25,)))],
)
def test_what_surrounds_the_weights_is_looked_through(
    wrapping: str, normalisation: tuple[tuple[float, ...], ...], tmp_path: Path
) -> None:
    source, target = _source(), _target(*normalisation)
    wrap, remarks = WRAPPINGS[wrapping]
    path = tmp_path / "weights.pt"
    torch.save(wrap(source.body.state_dict()), path)
    stored = read_weights(path)
    assert stored.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert fitting(stored, network_of(target)).remarks == remarks
    assert fitting(stored, network_of(on_meta_device(lambda: _target(*normalisation)))).remarks == remarks
    load_weights(target, stored)
    images = torch.rand(2, 3, 16, 16)
    with torch.no_grad():
        assert torch.equal(network_of(target.eval())(images), source.eval()(images))
    assert all(one.dtype in (torch.float32, torch.int64) for one in target.state_dict().values())


@pytest.mark.parametrize("normalisation", [(), ((0.5,), (0.25,))])
def test_an_exported_encoder_is_a_file_of_weights(
    normalisation: tuple[tuple[float, ...], ...], tmp_path: Path
) -> None:
    source, path = _target(*normalisation), tmp_path / "encoder.safetensors"
    mean, std = normalisation or ((), ())
    path.write_bytes(
        encoder_bytes(source, name="resnet18-cifar", channels=3, image_size=16, mean=mean, std=std)
    )
    stored, target = read_weights(path), _source()
    load_weights(target, stored)
    assert tuple(stored.header["mean"]) == mean
    there, here = network_of(source).state_dict(), network_of(target).state_dict()
    assert all(torch.equal(value, here[key]) for key, value in there.items())


def test_safetensors_of_others_are_read(tmp_path: Path) -> None:
    source, path = _source(), tmp_path / "model.safetensors"
    save_file({key: one.contiguous() for key, one in _head(source.body.state_dict()).items()}, path)
    assert read_weights(path).header == {}
    load_weights(_target(), read_weights(path))


def _without(state: State, *names: str) -> State:
    return {key: one for key, one in state.items() if key not in names}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: _without(s, "conv1.weight", "bn1.bias"), "missing: conv1.weight, bn1.bias$"),
        (lambda s: {**s, "layer5.weight": torch.zeros(2)}, "unexpected: layer5.weight$"),
        (
            lambda s: {**s, "conv1.weight": torch.zeros(64, 3, 7, 7)},
            r"of another shape: conv1.weight \(64, 3, 7, 7\), here \(64, 3, 3, 3\)$",
        ),
        (
            lambda s: {**_prefixed(s, "encoder_q."), **_prefixed(s, "encoder_k.")},
            "several networks that fit, under 'encoder_k.', 'encoder_q.'",
        ),
        (
            lambda s: {"other": torch.zeros(2)},
            "none of the network's tensors: it has 'other', the network 'bn1",
        ),
        (
            lambda s: {**s, "conv1.weight": (100 * s["conv1.weight"]).to(torch.int8)},
            r"no usable weights: whole numbers \(quantised\) in conv1.weight$",
        ),
        (
            lambda s: {
                **s,
                "bn1.running_var": s["bn1.running_var"] / 0,
                "conv1.weight": s["conv1.weight"] * torch.nan,
            },
            "no usable weights: NaN or Inf in conv1.weight, bn1.running_var$",
        ),
        (lambda s: {"epoch": 3, "weights": {"a": s}}, "holds no tensors by name, but 'epoch', 'weights'"),
        (lambda s: [1, 2], "holds no tensors by name, but list"),
    ],
)
def test_weights_that_do_not_fit_are_refused(
    change: Callable[[State], object], message: str, tmp_path: Path
) -> None:
    path, target = tmp_path / "weights.pt", _target()
    torch.save(change(_source().body.state_dict()), path)
    before = {key: one.clone() for key, one in target.state_dict().items()}
    with pytest.raises(ValueError, match=message):
        load_weights(target, read_weights(path))
    assert all(torch.equal(one, before[key]) for key, one in target.state_dict().items())


class Hostile:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (exec, ("raise SystemExit('executed')",))


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize(
    "content",
    [b"", b"garbage", pickle.dumps(Hostile()), b"\x40" + bytes(7) + b"{}"],
    ids=["empty", "text", "pickle", "a safetensors file's beginning"],
)
def test_nothing_in_a_file_is_executed(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"weights is no (readable )?safetensors file"):
        read_weights(path)


def test_a_whole_module_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    torch.save(nn.Linear(2, 2), path)
    with pytest.raises(ValueError, match=r"torch.save\(model.state_dict\(\), FILE\) writes one"):
        read_weights(path)
    with pytest.raises(ValueError, match="there is no such file"):
        read_weights(tmp_path / "absent.pt")
