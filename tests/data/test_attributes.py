import os
from pathlib import Path

import pytest
import torch

from contrasweep.data import read_attributes

_TABLE = """path,laces,sole,boot
a.png,1,rubber,TRUE
b.png,0,,False
c.png,1,leather,true
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "attributes.csv"
    path.write_text(_TABLE)
    return path


def test_binary_columns_stay_and_categories_become_one_each(table: Path) -> None:
    found = read_attributes(table, categorical=["sole"])
    assert found.images == ("a.png", "b.png", "c.png")
    assert found.names == ("laces", "sole=leather", "sole=rubber", "boot")
    assert found.values.dtype == torch.float32
    # The empty cell of b.png is neither leather nor rubber.
    assert found.values.tolist() == [[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 0, 1]]


def test_rows_follow_the_images_of_the_dataset(table: Path) -> None:
    found = read_attributes(table, ["c.png", "a.png"], categorical=["sole"], ignore=["boot"])
    assert found.images == ("c.png", "a.png")
    assert found.names == ("laces", "sole=leather", "sole=rubber")
    assert found.values.tolist() == [[1, 1, 0], [1, 0, 1]]


@pytest.mark.parametrize(("no", "yes"), [("0", "1"), ("-1", "1"), ("0.0", "1.0"), ("false", "True")])
def test_binary_values_are_spelled_in_four_ways(tmp_path: Path, no: str, yes: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"path,x\na,{no}\nb, {yes}\nc,{no}\n")
    assert read_attributes(path).values[:, 0].tolist() == [0, 1, 0]


def test_missing_rows_are_counted_and_named(table: Path) -> None:
    with pytest.raises(ValueError, match=r"lacks the rows of 4 of 5 images: 'd', 'e', 'f' and 1 more"):
        read_attributes(table, ["d", "e", "a.png", "f", "g"], ignore=["sole"])
    with pytest.raises(ValueError, match=r"lacks the rows of 1 of 1 images: 'd'$"):
        read_attributes(table, ["d"], ignore=["sole"])


def test_two_rows_of_an_image_are_refused(table: Path) -> None:
    table.write_text(_TABLE + "a.png,0,rubber,true\n")
    with pytest.raises(ValueError, match=r"more than one row of 'a\.png'"):
        read_attributes(table, ignore=["sole"])


def test_a_value_that_is_not_binary_is_named_with_its_image(table: Path) -> None:
    with pytest.raises(ValueError, match=r"'sole' is not binary, 'a\.png' has 'rubber' there"):
        read_attributes(table)
    table.write_text("path,x\na,1\nb,\n")
    with pytest.raises(ValueError, match=r"'x' is not binary, 'b' has '' there"):
        read_attributes(table)
    # Each is binary, but not beside the other.
    table.write_text("path,x\na,0\nb,1\nc,-1\n")
    with pytest.raises(ValueError, match=r"'x' is not binary, 'c' has '-1' there"):
        read_attributes(table)


def test_a_column_that_is_not_there_is_named_with_the_nearest(table: Path) -> None:
    with pytest.raises(ValueError, match=r"unknown column 'sloe'\. Did you mean 'sole'\?"):
        read_attributes(table, categorical=["sloe"])
    with pytest.raises(ValueError, match=r"unknown column 'image'.*: path, laces, sole, boot"):
        read_attributes(table, image_column="image")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"path,x\n", "has a header but no rows"),
        (b"path,x\na,1\nb\n", "Row #3: Expected 2 columns, got 1"),
        (b"path,x,x\na,1,1\n", "more than once: 'x'"),
        (b"path\na\n", "no attributes besides 'path'"),
        (b"path,x\n\xff\xfe,1\n", "UTF-?8"),
        (b"path" + b",x" * 1_000_000, "more than 10,000 columns"),
        (b"x" * 200_000, "is no list of columns"),
    ],
)
def test_a_file_without_a_table_is_refused(table: Path, content: bytes, message: str) -> None:
    table.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_attributes(table)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nowhere\.csv: there is no such file"):
        read_attributes(tmp_path / "nowhere.csv")
    os.mkfifo(tmp_path / "pipe.csv")  # opening it would wait for a writer
    with pytest.raises(ValueError, match=r"pipe\.csv: is a pipe"):
        read_attributes(tmp_path / "pipe.csv")


def test_an_image_is_named_once(table: Path) -> None:
    with pytest.raises(
        ValueError, match=r"'a\.png' given more than once; name images so that each has a row"
    ):
        read_attributes(table, ["a.png", "b.png", "a.png"], ignore=["sole"])
