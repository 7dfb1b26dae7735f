"""MNIST's files: what has their size and not their content is told as damage."""

import struct
from pathlib import Path

import pytest

from contrasweep.data import DatasetDamaged
from contrasweep.data.sources.digits import read_mnist, read_mnist_labels


def _write(root: Path, kind: str, header: tuple[int, ...], content: bytes) -> None:
    file = root / f"MNIST/raw/t10k-{kind}-ubyte"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(struct.pack(f">{len(header)}i", *header) + content)


def test_images_and_labels_are_read(tmp_path: Path) -> None:
    _write(tmp_path, "images-idx3", (0x803, 2, 28, 28), bytes(range(196)) * 8)
    _write(tmp_path, "labels-idx1", (0x801, 2), b"\x07\x02")
    digits = read_mnist(tmp_path, "test")
    assert digits.labels.tolist() == [7, 2]
    assert digits.pixels.shape == (2, 1, 28, 28)
    assert digits.pixels[1, 0, 0, :3].tolist() == [0, 1, 2]


@pytest.mark.parametrize("magic", [0, 0x803, 0xA01, 0xD01, 0x7F01])
def test_a_file_with_another_header_is_damaged(tmp_path: Path, magic: int) -> None:
    _write(tmp_path, "labels-idx1", (magic, 2), b"\x07\x02")
    with pytest.raises(DatasetDamaged, match=r"t10k-labels-idx1-ubyte is not a file of MNIST\. Get it again"):
        read_mnist_labels(tmp_path, "test")


def test_a_label_that_is_no_digit_is_damage(tmp_path: Path) -> None:
    _write(tmp_path, "labels-idx1", (0x801, 2), b"\x07\x0b")
    with pytest.raises(DatasetDamaged, match=r"label 11 of row 1 of .*-ubyte is out of range"):
        read_mnist_labels(tmp_path, "test")
