"""Damaged, foreign and hostile checkpoints, encoders and files of conditions: refused, and nothing is run."""

import hashlib
import io
import json
import os
import pickle
import random
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save

from contrasweep.models import build_encoder, encoder_bytes, load_encoder
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.training.checkpoint import DIGEST_BYTES
from contrasweep.tuning.training.pretrain import pretrain
from tests.fuzz.damages import GARBLINGS, ODD
from tests.fuzz.harness import fuzz, random_of
from tests.fuzz.test_fuzz_images import encoded

CASES = 25
EXPERIMENT = "method: infonce\ndataset: digits\nepochs: 1\nhead: {width: 8}\nvalidation: {fraction: 0.5}\n"


class Attack:
    """Makes a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return os.mkdir, (str(self._file),)


@pytest.fixture(scope="module")
def checkpoint() -> bytes:
    """The checkpoint of a whole run."""
    settings = {"epochs": 1, "head.width": 8, "validation.fraction": 0.5}
    return [record.checkpoint() for record in pretrain(resolve("infonce", "digits", settings))][-1]


def sealed(state: bytes) -> bytes:
    """Return a checkpoint with a digest that is right, as an attacker would make it."""
    return hashlib.blake2b(state, digest_size=DIGEST_BYTES).digest() + state


def stored(content: Any) -> bytes:
    """Return what `torch.save` makes of a content."""
    file = io.BytesIO()
    torch.save(content, file)
    return file.getvalue()


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return a compressed archive."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


def _changed(state: bytes, draws: random.Random) -> tuple[bytes, str]:
    """Change one thing in the content of a checkpoint."""
    content = torch.load(io.BytesIO(state), weights_only=True)
    where, key = content, draws.choice(sorted(content))
    while isinstance(where[key], dict) and where[key] and draws.random() < 0.8:
        where = where[key]
        key = draws.choice(sorted(where, key=str))
    way = draws.choice(["dropped", "renamed", "odd", "shape", "type"])
    if way == "dropped":
        del where[key]
    elif way == "renamed":
        where[f"{key}x"] = where.pop(key)
    elif way == "odd" or not isinstance(where[key], torch.Tensor):
        where[key] = draws.choice(ODD)
        way = f"{where[key]!r:.40}"
    elif way == "shape":
        where[key] = torch.zeros(draws.choice([(), (0,), (3, 3), (1, 2, 3, 4, 5)]))
    else:
        where[key] = where[key].to(draws.choice([torch.complex64, torch.bool, torch.int8, torch.float16]))
    return stored(content), f"{key}: {way}"


def _garbled(state: bytes, draws: random.Random) -> tuple[bytes, str]:
    return draws.choice(GARBLINGS)(state, draws)


def _hostile(state: bytes, draws: random.Random, mark: Path) -> tuple[bytes, str]:
    attack = pickle.dumps({"format": 1, "experiment": Attack(mark)})
    ways: dict[str, Callable[[], bytes]] = {
        "a pickle": lambda: attack,
        "an old checkpoint of torch": lambda: (
            b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03." + attack
        ),
        "an archive with a pickle": lambda: zipped({"archive/data.pkl": attack, "archive/version": b"3\n"}),
        "TorchScript": lambda: zipped(
            {"archive/code/x.py": b"1", "archive/data.pkl": attack, "archive/constants.pkl": attack}
        ),
        "a bomb": lambda: zipped({"archive/data.pkl": b"\0" * 10**7, "archive/version": b"3\n"}),
        "a tensor": lambda: stored(torch.zeros(3)),
        "a list": lambda: stored([1, {"format": 1}]),
        "another format": lambda: stored({"format": 2}),
        "a deep experiment": lambda: stored({"format": 1, "experiment": "[" * 100_000}),
        "an experiment that is none": lambda: stored({"format": 1, "experiment": draws.choice(ODD)}),
        "safetensors": lambda: save({"a": torch.zeros(3)}),
        "nothing": lambda: b"",
    }
    way = draws.choice(sorted(ways))
    return ways[way](), way


def test_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkpoint: bytes, times: int) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiment.yaml").write_text(EXPERIMENT)
    file, mark, state = tmp_path / "state", tmp_path / "attacked", checkpoint[DIGEST_BYTES:]
    for case in range(CASES * times):
        draws = random_of("checkpoint", case)
        way = draws.choice(["changed", "changed", "garbled", "hostile", "unsealed"])
        if way == "changed":
            content, what = _changed(state, draws)
        elif way == "hostile":
            content, what = _hostile(state, draws, mark)
        else:
            content, what = _garbled(state, draws)
        file.write_bytes(checkpoint[:DIGEST_BYTES] + content if way == "unsealed" else sealed(content))
        fuzz(
            "train",
            "experiment.yaml",
            "--checkpoint",
            file,
            allowed=(0, 2),
            case=f"case {case}: {way}, {what}",
        )
        assert not mark.exists(), what


def test_a_checkpoint_that_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiment.yaml").write_text(EXPERIMENT)
    os.mkfifo("pipe")
    for path in (".", "pipe", "/dev/zero", "experiment.yaml/x", "x" * 300):
        fuzz("train", "experiment.yaml", "--checkpoint", path, allowed=(2,), case=path)


def safetensors(header: object, rest: bytes = b"", length: int | None = None) -> bytes:
    """Return a safetensors file with any header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + rest


HEADERS: tuple[bytes, ...] = (
    b"",
    safetensors({}, length=2**63),
    safetensors({}, length=10**9),
    safetensors(b"[" * 100_000),
    safetensors({"a": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 4]}}, b"0000"),
    safetensors({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 2**62]}}, b"0000"),
    safetensors({"__metadata__": {"format": "contrasweep-encoder-1"}}),
    *(
        safetensors({"__metadata__": {"format": "contrasweep-encoder-1", "encoder": encoder}})
        for encoder in (
            "",
            "{",
            "3",
            "[]",
            "{}",
            "null",
            '{"channels": 3}',
            '{"name": "lenet5", "channels": 10000000, "image_size": 32}',
            '{"name": "lenet5", "channels": -1, "image_size": 32}',
            '{"name": "lenet5", "channels": "3", "image_size": 32}',
            '{"name": "nonsense", "channels": 3, "image_size": 32}',
            '{"name": "lenet5", "channels": 3, "image_size": 32, "mean": [1], "std": ["x"]}',
            '{"name": "lenet5", "channels": 3, "image_size": 32, "other": 1}',
            '{"name": "lenet5", "views": [[1]]}',
            '{"name": ["lenet5"], "channels": 3, "image_size": 32}',
            "[" * 100_000,
        )
    ),
)


def test_encoders(tmp_path: Path, times: int) -> None:
    """An encoder file is read, or refused with a ValueError that names it."""
    file, mark = tmp_path / "encoder.safetensors", tmp_path / "attacked"
    whole = encoder_bytes(build_encoder("lenet5", 3, 32), name="lenet5", channels=3, image_size=32)
    wholes = [*HEADERS, pickle.dumps(Attack(mark)), stored({"a": torch.zeros(3)})]
    for case in range(CASES * times):
        draws = random_of("encoder", case)
        wholes.append(draws.choice(GARBLINGS)(whole[: draws.choice([200, 800, len(whole)])], draws)[0])
    for case, content in enumerate(wholes):
        file.write_bytes(content)
        assert "\n" not in _refusal(file), case
        assert not mark.exists()


def _refusal(file: Path) -> str:
    """Return why an encoder file is refused, after its path; empty if it is read."""
    try:
        load_encoder(file)
    except ValueError as error:
        assert str(error).startswith(f"{file} is not an encoder"), error  # noqa: PT017
        return str(error)
    return ""


def test_conditions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    monkeypatch.setenv("CONTRASWEEP_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for place in ("train/a", "train/b", "test/a"):
        (tmp_path / "tree" / place).mkdir(parents=True)
        (tmp_path / "tree" / place / "x.png").write_bytes(encoded("PNG"))
    wholes = {".npy": _npy(np.zeros((2, 3))), ".safetensors": save({"a": torch.zeros(2, 3)})}
    for case in range(CASES * times):
        draws = random_of("condition", case)
        ending = draws.choice(sorted(wholes))
        content, what = draws.choice(GARBLINGS)(wholes[ending], draws)
        if draws.random() < 0.4:
            content, what = draws.choice([*HEADERS, *_arrays(tmp_path / "attacked")]), "foreign"
        file = tmp_path / f"condition{case}{ending}"
        file.write_bytes(content)
        data = f"image-folder:path=tree,size=8,condition={file.name}"
        fuzz("datasets", "check", data, allowed=(0, 2), case=f"case {case}: {ending} {what}")
        assert not (tmp_path / "attacked").exists()


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def _arrays(mark: Path) -> list[bytes]:
    """Return arrays that are no condition, one of which would run a command."""
    huge = _npy(np.zeros((2, 3))).replace(b"(2, 3), ", b"(2, 10**12), ".ljust(8)[:8])
    return [
        _npy(np.array([Attack(mark)], dtype=object)),
        _npy(np.array(["a", "b"])),
        _npy(np.zeros((2, 3), dtype=complex)),
        _npy(np.array([[np.nan, 1], [2, 3]])),
        _npy(np.array(["2024-01-01", "NaT"], dtype="datetime64[D]")),
        _npy(np.zeros(2, dtype=[("a", "f4")])),
        _npy(np.zeros((0, 3))),
        _npy(np.zeros(())),
        _npy(np.zeros((2, 0))),
        zipped({"a.npy": _npy(np.zeros((2, 3)))}),
        huge,
        pickle.dumps(Attack(mark)),
    ]
