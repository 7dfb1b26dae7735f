"""A folder that is given in place of a dataset: the message says what to type."""

import os
from pathlib import Path

import pytest
from encoded_files import encoded, pixels

from contrasweep.data import check_available
from contrasweep.data.own_folders import misread_layout, split_folder, unknown_dataset
from contrasweep.data.root import ROOT_VARIABLE

KNOWN = ["cifar10", "digits"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a folder of images; the data root is another folder."""
    for file in ("train/cat/a.png", "test/cat/b.png"):
        place = tmp_path / "my photos" / file
        place.parent.mkdir(parents=True)
        place.write_bytes(encoded(pixels(0)))
    (tmp_path / "photos").symlink_to("my photos")
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path / "data"))
    return tmp_path


def _typed(message: str) -> str:
    return message.partition("type ")[2].partition(" (size=")[0]


@pytest.mark.parametrize("given", ["photos", "./photos", "photos/", "{here}/photos"])
def test_the_whole_name_to_type_is_said_at_once(here: Path, given: str) -> None:
    given = given.format(here=here)
    message = unknown_dataset(given, KNOWN)
    height, width = pixels(0).shape[:2]
    assert message.startswith(
        f"unknown dataset {given!r}. For the images of this folder, type image-folder:path="
    )
    assert f"the first image is {width} wide and {height} high" in message
    assert _typed(message) == f"image-folder:path={here}/photos,size={min(height, width)}"
    (here / "photos/train/dog").mkdir()
    (here / "photos/train/dog/a.png").write_bytes(encoded(pixels(1)))
    check_available(_typed(message))


def test_a_name_with_blanks_is_quoted_for_the_shell(here: Path) -> None:
    assert _typed(unknown_dataset("my photos", KNOWN)).startswith(
        f"'image-folder:path={here}/my photos,size="
    )


def test_a_folder_under_the_data_root_is_found(here: Path) -> None:
    (here / "photos").unlink()
    (here / "data" / "photos").symlink_to(here / "my photos")
    assert f"path={here}/data/photos,size=" in unknown_dataset("photos", KNOWN)


def test_large_images_are_suggested_smaller_and_damaged_ones_do_not_count(here: Path) -> None:
    (here / "photos/train/cat/a.png").write_bytes(b"none")
    os.mkfifo(here / "photos/train/cat/b.png")  # opening it would wait for a writer
    assert _typed(unknown_dataset("photos", KNOWN)).endswith(",size=32")
    (here / "photos/train/cat/c.png").write_bytes(encoded(pixels(0, 300, 400)))
    message = unknown_dataset("photos", KNOWN)
    assert _typed(message).endswith(",size=224")
    assert "400 wide and 300 high" in message


def test_a_folder_of_parquet_files_is_another_dataset(here: Path) -> None:
    (here / "parquet").mkdir()
    (here / "parquet" / "train-0.parquet").touch()
    assert f"type hub-parquet:path={here}/parquet." in unknown_dataset("./parquet", KNOWN)


@pytest.mark.parametrize("file", ["dataset_dict.json", "state.json"])
def test_a_folder_of_save_to_disk_is_another_dataset(here: Path, file: str) -> None:
    (here / "saved/train").mkdir(parents=True)
    (here / "saved" / file).touch()
    assert f"For what save_to_disk wrote there, type hf:path={here}/saved." in unknown_dataset("saved", KNOWN)


def test_a_name_of_the_hub_is_told_how_to_be_given(here: Path) -> None:
    hub = "a dataset of the Hugging Face hub is hf:"
    assert f"; {hub}uoft-cs/cifar10." in unknown_dataset("uoft-cs/cifar10", KNOWN)
    assert hub not in unknown_dataset("./cifar10", KNOWN)
    assert f", {hub}OWNER/NAME" in unknown_dataset("SVHN", KNOWN)


def test_a_folder_that_is_laid_out_otherwise(here: Path) -> None:
    (here / "pile/cat").mkdir(parents=True)
    (here / "pile/cat/a.png").write_bytes(encoded(pixels(0, 20, 20)))
    assert _typed(unknown_dataset("pile", KNOWN)).endswith("pile,size=20")
    (here / "loose").mkdir()
    (here / "loose/a.png").write_bytes(encoded(pixels(0, 20, 20)))
    assert _typed(unknown_dataset("loose", KNOWN)).endswith("loose,size=20,labels=none")
    (here / "a,b").mkdir()
    assert "comma" in unknown_dataset("./a,b", KNOWN)


def test_a_name_like_that_of_a_dataset_and_a_folder(here: Path) -> None:
    (here / "cifar").mkdir()
    assert (
        unknown_dataset("cifar", KNOWN)
        == "unknown dataset 'cifar'. Did you mean 'cifar10'? Known: cifar10, digits."
    )
    (here / "cifar" / "train").mkdir()
    both = unknown_dataset("cifar", KNOWN)
    assert "Did you mean 'cifar10'? For the images of this folder, type image-folder:path=" in both


@pytest.mark.parametrize("given", ["./nowhere", "no/where", "~nobody-of-this-name/photos"])
def test_a_path_that_leads_nowhere(here: Path, given: str) -> None:
    message = unknown_dataset(given, KNOWN)
    assert "is not a folder. A folder of your own images is image-folder:path=FOLDER,size=PIXELS" in message


@pytest.mark.parametrize("given", ["", "x" * 300, "a\0b"])
def test_what_can_be_no_folder_is_an_unknown_name(here: Path, given: str) -> None:
    assert "Known: cifar10, digits." in unknown_dataset(given, KNOWN)


def test_a_well_known_set_that_is_not_offered(here: Path) -> None:
    assert "It is not offered; a folder of your own images is image-folder:" in unknown_dataset("SVHN", KNOWN)


@pytest.mark.parametrize("inner", ["ant", ""])
def test_no_image_is_asked_whether_it_is_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inner: str
) -> None:
    asked: list[str] = []
    for place in (tmp_path / inner, tmp_path / "bee"):
        place.mkdir(exist_ok=True)
        (place / "1.png").touch()
    (tmp_path / inner / "Train").touch()
    (tmp_path / "Test").mkdir()
    is_dir = Path.is_dir
    monkeypatch.setattr(Path, "is_dir", lambda place: (asked.append(place.name), is_dir(place))[1])
    assert split_folder(tmp_path, "train") is None
    assert split_folder(tmp_path, "test") == tmp_path / "Test"
    assert not misread_layout(tmp_path, ["ant", "bee"])
    assert "1.png" not in asked
