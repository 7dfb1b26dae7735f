"""A condition from a CSV file that names the images: `image-folder:...,condition=FILE.csv`."""

from pathlib import Path

import pytest
import torch
from encoded_files import encoded, pixels

from contrasweep.data import DatasetDamaged, check_available, dataset_spec, load_training
from contrasweep.data.condition_table import MOST_CATEGORIES, read_condition_table
from contrasweep.data.fingerprint import Listing

NAME = "image-folder:path=tree,size=8,condition=about.csv"
FILES = ("ant/c.png", "cat/a.png", "cat/b.png")
IMAGES = Listing(Path("/photos/train"), FILES)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table in another order than the images, with a row of a test image."""
    path = tmp_path / "about.csv"
    path.write_text(
        "image,light,camera\ncat/b.png,-2e3,small\ncat/z.png,,\nant/c.png,0.5,\ncat/a.png,1,large\n",
        encoding="utf-8",
    )
    return path


def test_rows_are_found_by_the_names_of_the_images(table: Path) -> None:
    found = read_condition_table(table, IMAGES)
    assert found.dtype == torch.float32
    # Light, then the words of camera in their order; the ant's image has none.
    assert found.tolist() == [[0.5, 0.0, 0.0], [1.0, 1.0, 0.0], [-2000.0, 0.0, 1.0]]


@pytest.mark.parametrize("above", ["./", "train/", "photos/train/", "/photos/train/"])
def test_names_may_have_the_folders_above(above: str, table: Path) -> None:
    expected = read_condition_table(table, IMAGES).tolist()
    table.write_text(table.read_text().replace("ant/", f"{above}ant/").replace("cat/", f"{above}cat/"))
    assert read_condition_table(table, IMAGES).tolist() == expected


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            "id,x\n1,2\n",
            "first column, 'id', names none of the 3 training images: it has '1', .* 'ant/c.png'",
        ),
        ("id,x\ncat/a.png,2\n", "lacks the rows of 2 of 3 images: 'ant/c.png', 'cat/b.png'"),
        ("id\ncat/a.png\n", "has no column besides 'id'"),
        (
            "id,x\ncat/a.png,2\nant/c.png,n/a\ncat/b.png,1\n",
            "column 'x' has numbers, but 'n/a' for 'ant/c.png'",
        ),
        ("id,x\ncat/a.png,2\nant/c.png,\ncat/b.png,1\n", "column 'x' has numbers, but '' for 'ant/c.png'"),
        (
            "id,x\ncat/a.png,\nant/c.png,\ncat/b.png,\n",
            "column 'x' has 0 different words; allowed: 1 to 1,000",
        ),
        ("id,x\ncat/a.png,2\ncat/a.png,2\nant/c.png,1\ncat/b.png,1\n", "more than one row of 'cat/a.png'"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(content: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "about.csv").write_text(content, encoding="utf-8")
    with pytest.raises(DatasetDamaged, match=problem):
        read_condition_table(tmp_path / "about.csv", IMAGES)


def test_a_column_of_remarks_is_refused(tmp_path: Path) -> None:
    names = tuple(f"cat/{number}.png" for number in range(MOST_CATEGORIES + 1))
    rows = "".join(f"{name},remark on {name}\n" for name in names)
    (tmp_path / "about.csv").write_text(f"id,note\n{rows}", encoding="utf-8")
    with pytest.raises(DatasetDamaged, match="column 'note' has 1,001 different words"):
        read_condition_table(tmp_path / "about.csv", Listing(Path("/photos"), names))


def test_a_folder_of_images_takes_it(table: Path) -> None:
    for seed, file in enumerate([*FILES, "../val/cat/d.png"]):
        place = table.parent / "tree/train" / file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(encoded(pixels(seed)))
    check_available(NAME, table.parent)
    spec = dataset_spec(NAME, table.parent)
    assert (spec.condition_dim, spec.condition_name) == (3, "the rows of about.csv")
    condition = load_training(NAME, table.parent).train.condition
    assert condition is not None
    spread = torch.cdist(condition, condition).square().mean().item()
    assert spec.condition_spread == pytest.approx(spread, rel=1e-5)
    assert condition.tolist() == read_condition_table(table, IMAGES).tolist()
    table.write_text(table.read_text().replace("-2e3", "1e300"))
    with pytest.raises(DatasetDamaged, match="hold NaN, Inf or numbers beyond float32"):
        dataset_spec(NAME, table.parent)


def test_images_without_names_need_rows_in_their_order(tmp_path: Path) -> None:
    from contrasweep.data import read_condition

    (tmp_path / "about.csv").write_text("x\n1\n")
    with pytest.raises(
        DatasetDamaged, match=r"only of image-folder, whose images have names, also from \.csv"
    ):
        read_condition(tmp_path / "about.csv", images=1)
