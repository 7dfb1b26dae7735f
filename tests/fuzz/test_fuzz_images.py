"""Broken, foreign and huge images, and labels that are none: told, or left out with corrupt=skip."""

import io
import json
import os
import random
import struct
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.fuzz.damages import GARBLINGS
from tests.fuzz.harness import fuzz, random_of

CASES = 40
FORMATS = {
    "PNG": ".png",
    "JPEG": ".jpg",
    "GIF": ".gif",
    "BMP": ".bmp",
    "TIFF": ".tif",
    "WEBP": ".webp",
    "PPM": ".ppm",
}
MODES = ("RGB", "L", "P", "1", "CMYK", "RGBA", "LA", "I;16", "F", "YCbCr", "LAB", "HSV")


@cache
def encoded(kind: str, mode: str = "RGB", size: tuple[int, int] = (12, 10), **options: Any) -> bytes:
    """Return an image file; where the format has no such mode, one of RGB."""
    levels = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    file = io.BytesIO()
    image = Image.fromarray(levels)
    try:
        image.convert("I").convert(mode).save(file, kind, **options) if mode == "I;16" else image.convert(
            mode
        ).save(file, kind, **options)
    except (OSError, ValueError, KeyError):
        file = io.BytesIO()
        image.save(file, kind)
    return file.getvalue()


def claiming(width: int, height: int) -> bytes:
    """Return a PNG file whose header claims a size; a few bytes of its pixels follow."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0" * 1000)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def animated(kind: str) -> bytes:
    """Return an image file of three pictures, of two sizes where the format has them."""
    file = io.BytesIO()
    pictures = [
        Image.new("RGB", (8 + number * (kind == "TIFF"), 8), (number * 80, 0, 0)) for number in range(3)
    ]
    pictures[0].save(file, kind, save_all=True, append_images=pictures[1:])
    return file.getvalue()


def text_bomb() -> bytes:
    """Return a PNG file with a compressed text of 10 MB."""
    whole = encoded("PNG")
    text = b"Comment\0\0" + zlib.compress(b"0" * 10**7)
    chunk = struct.pack(">I", len(text)) + b"zTXt" + text + struct.pack(">I", zlib.crc32(b"zTXt" + text))
    return whole[:33] + chunk + whole[33:]


ODD: Mapping[str, Callable[[], bytes]] = {
    "no bytes": lambda: b"",
    "one byte": lambda: b"\xff",
    "only a JPEG's beginning": lambda: b"\xff\xd8\xff",
    "padding without an end": lambda: b"\xff\xd8" + b"\xff" * 3000,
    "markers without a frame": lambda: b"\xff\xd8" + b"\xff\xe0\x00\x02" * 3000,
    "zero pixels": lambda: claiming(0, 0),
    "no width": lambda: claiming(0, 10),
    "1 x 60,000": lambda: claiming(60_000, 1),
    "60,000 x 1, whole": lambda: encoded("PNG", size=(1, 60_000)),
    "1 x 60,000, JPEG": lambda: encoded("JPEG", size=(60_000, 1)),
    "a bomb": lambda: claiming(50_000, 50_000),
    "a larger bomb": lambda: claiming(2**31 - 1, 2**31 - 1),
    "a size that no image has": lambda: claiming(2**32 - 1, 2**32 - 1),
    "a large JPEG": lambda: encoded("JPEG", "L", size=(64, 64)).replace(
        b"\0\x40\0\x40", b"\xff\xff\xff\xff", 1
    ),
    "a text bomb": text_bomb,
    "animated GIF": lambda: animated("GIF"),
    "animated WebP": lambda: animated("WEBP"),
    "pages of a TIFF": lambda: animated("TIFF"),
    "text": lambda: b"path,label\na,1\n",
    "HTML": lambda: b"<html>404 Not Found</html>",
    "SVG": lambda: b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>",
    "PostScript": lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n",
    "a pickle": lambda: b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R.",
    "Git LFS": lambda: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
}


@cache
def odd(name: str) -> bytes:
    """Return one of the odd files."""
    return ODD[name]()


def picture(draws: random.Random) -> tuple[bytes, str]:
    """Return an image file, mostly a broken or odd one, and what it is."""
    kind, mode = draws.choice(list(FORMATS)), draws.choice(MODES)
    way = draws.choice(["odd", "mode", "broken", "broken", "broken"])
    if way == "odd":
        name = draws.choice(sorted(ODD))
        return odd(name), name
    whole = encoded(kind, mode, draws.choice([(12, 10), (1, 1), (1, 9), (200, 2), (33, 32)]))
    if way == "mode":
        return whole, f"{kind} {mode}"
    content, what = draws.choice(GARBLINGS)(whole, draws)
    return content, f"{kind} {mode}, {what}"


OPTIONS = ("", ",corrupt=skip", ",colour=grey", ",colour=rgb,corrupt=skip")


@pytest.fixture(autouse=True)
def in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONTRASWEEP_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_folders_of_images(tmp_path: Path, times: int) -> None:
    good = encoded("PNG")
    for case in range(CASES * times):
        draws = random_of("image folder", case)
        tree = tmp_path / f"tree{case}"
        for place in ("train/a", "train/b", "val/a"):
            (tree / place).mkdir(parents=True)
            (tree / place / "good.png").write_bytes(good)
        told = []
        for number in range(draws.choice([1, 1, 3])):
            content, what = picture(draws)
            place, ending = (
                draws.choice(["train/a", "train/b", "val/a"]),
                draws.choice([*FORMATS.values(), ".PNG"]),
            )
            name = draws.choice([str(number), "a b", "ü", "\udcff", "-", "good"])
            (tree / place / f"{name}{ending}").write_bytes(content)
            told.append(f"{what} as {place}/{name}{ending}")
        size = draws.choice([1, 32, 300, 8193]) if draws.random() < 0.5 else 8
        data = f"image-folder:path=tree{case},size={size}{draws.choice(OPTIONS)}"
        _check(data, draws, f"case {case}: {data}: {'; '.join(told)}")


LABELS: Mapping[str, Callable[[int], Any]] = {
    "whole numbers": lambda count: list(range(count)),
    "all one": lambda count: [0] * count,
    "negative": lambda count: [-1] * count,
    "huge": lambda count: [2**62] * count,
    "unsigned": lambda count: pa.array([2**64 - 1] * count, pa.uint64()),
    "bytes": lambda count: pa.array([200] * count, pa.uint8()),
    "floats": lambda count: [0.5] * count,
    "texts": lambda count: ["a"] * count,
    "lists": lambda count: [[0]] * count,
    "missing": lambda count: [0, *[None] * (count - 1)][:count],
    "all missing": lambda count: pa.array([None] * count, pa.int64()),
    "nothing": pa.nulls,
    "true and false": lambda count: [True] * count,
    "dates": lambda count: pa.array([0] * count, pa.date32()),
    "a dictionary": lambda count: pa.array(["a"] * count).dictionary_encode(),
}
HUB = (
    None,
    b"",
    b"null",
    b"{",
    b"[1]",
    b'{"info": 3}',
    b'{"info": {"features": []}}',
    b'{"info": {"features": {"label": {"names": 3}}}}',
    b'{"info": {"features": {"label": {"names": {"x": "cat", "1": "dog"}}}}}',
    b'{"info": {"features": {"label": {"names": [["cat"], null]}}}}',
    b'{"info": {"license": [1], "features": {"label": null}}}',
    json.dumps({"info": {"features": {"label": {"names": ["cat", "dog", "cow", "hen"]}}}}).encode(),
    b"[" * 100_000,
    b"\xff",
)


def test_parquet_of_images(tmp_path: Path, times: int) -> None:
    for case in range(CASES * times):
        draws = random_of("parquet", case)
        folder = tmp_path / f"parquet{case}"
        folder.mkdir()
        told = [_write_split(folder, split, draws) for split in ("train", "test")]
        size = draws.choice([0, 0, 8, 300, 8193])
        data = f"hub-parquet:path=parquet{case},size={size}{draws.choice(OPTIONS)}"
        _check(data, draws, f"case {case}: {data}: {'; '.join(told)}")


def _write_split(folder: Path, split: str, draws: random.Random) -> str:
    """Write one Parquet file with images, labels and metadata, some of them broken; return what it holds."""
    count = draws.choice([0, 1, 3, 3, 3])
    images: list[Any] = [{"bytes": encoded("PNG", size=(8, 8)), "path": "x"} for _ in range(count)]
    told = "good images"
    if count and draws.random() < 0.5:
        content, told = picture(draws)
        images[-1] = draws.choice([{"bytes": content, "path": None}, {"bytes": content, "path": "x"}])
    if draws.random() < 0.15:
        told, images = draws.choice(
            [
                ("no image", [None] * count),
                ("no bytes", [{"bytes": None, "path": "x"}] * count),
                ("texts for images", ["x"] * count),
                ("another struct", [{"data": b"x"}] * count),
                ("text for bytes", [{"bytes": "x", "path": "x"}] * count),
            ]
        )
    kind = "whole numbers" if draws.random() < 0.5 else draws.choice(sorted(LABELS))
    names = draws.choice(
        [("image", "label"), ("img", "labels"), ("image", "label"), ("picture", "label"), ("image", "x")]
    )
    hub = draws.choice(HUB)
    table = pa.table(dict(zip(names, (images, LABELS[kind](count)), strict=True)))
    file = folder / f"{split}-00000-of-00001.parquet"
    pq.write_table(table if hub is None else table.replace_schema_metadata({"huggingface": hub}), file)
    if draws.random() < 0.2:
        content, what = draws.choice(GARBLINGS)(file.read_bytes(), draws)
        file.write_bytes(content)
        told += f", {what}"
    return f"{split}: {count} rows, {told}; {kind}; {names}; {hub!r:.60}"


def _check(data: str, draws: random.Random, case: str) -> None:
    """Look into the dataset; now and then plan a sweep on it."""
    every = ["--all"] if draws.random() < 0.7 else []
    fuzz("datasets", "check", data, *every, "--json", allowed=(0, 2), case=case)
    if draws.random() < 0.1:
        fuzz("sweep", "infonce", "--data", data, "--trials", "1", "--dry-run", allowed=(0, 2), case=case)


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("link")
    for path in (
        "pipe",
        "file",
        "link",
        "",
        ".",
        "/dev/null",
        "x" * 300,
        "\udcff",
        "a\nb",
        "s3:/x",
        "gopher://x",
    ):
        for data in (f"image-folder:path={path},size=8", f"hub-parquet:path={path}"):
            fuzz("datasets", "check", data, allowed=(2,), case=data)
