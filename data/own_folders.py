"""Folders of one's own images: how they are laid out, and what to type for one that is given as a dataset.

Nothing here imports torch.
"""

import os
import re
import shlex
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from contrasweep.data.listing import files_below
from contrasweep.data.root import data_root, path_below
from contrasweep.given_files import FileRefused, check_given
from contrasweep.names import did_you_mean, nearest, unknown

IMAGES, PARQUET, HUB = "image-folder", "hub-parquet", "hf"
EXTENSIONS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
TEST_NAMES = ("test", "validation", "val", "valid")
"""What a test split is called; the first that is there counts."""
FOLDERS = {"train": ("train", "training"), "test": (*TEST_NAMES, "testing")}
"""What the folder of a split is called; the first that is there counts."""

_LIKE_TRAIN = re.compile(r"train(ing)?([ _-].*)?", re.IGNORECASE)
_LIKE_TEST = re.compile(r"(test(ing)?|val(id|idation)?)([ _-].*)?", re.IGNORECASE)

HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
"""How a dataset is named on the Hugging Face hub: OWNER/NAME, or NAME."""

_SAVED = ("dataset_dict.json", "state.json")
"""What `save_to_disk` of the library `datasets` writes beside the splits, or beside the files of one."""

_USUAL_SIZE, _LARGEST_SIZE = 32, 224
"""The size that is suggested where no image can be read, and the largest one: what ResNets are trained on."""

_LOOKED_AT = 8
"""How many images are looked at to suggest a size: the first that can be read counts."""


def _form(path: str, size: str) -> str:
    return f"{IMAGES}:path={path},size={size}"


_OWN = f"folder of your own images is {_form('FOLDER', 'PIXELS')}"
_OF_HUB = "a dataset of the Hugging Face hub is"


def unknown_dataset(given: str, known: Iterable[str]) -> str:
    """Return the message for a name that no dataset has; for a folder that is there, it says what to type."""
    names = list(known)
    folder, is_path = _folder(given), any(mark in given for mark in (os.sep, "~"))
    if folder is None and is_path:
        where = Path(os.path.expanduser(given)).absolute()  # a user without a home stays as typed
        hub = f"; {_OF_HUB} {HUB}:{given}" if HUB_NAME.fullmatch(given) and given[0] not in ".~" else ""
        return f"unknown dataset {given!r}, and {where} is not a folder. A {_OWN}{hub}."
    instead = f"; a {_OWN}, {_OF_HUB} {HUB}:OWNER/NAME"
    is_named = nearest(given, names, "dataset") is not None and not is_path
    if folder is None or (is_named and not _is_laid_out(folder) and not _holds_images(folder)):
        return unknown("dataset", given, names, instead)
    hint = "" if is_path else did_you_mean(given, names, "dataset")
    return f"unknown dataset {given!r}.{hint} {_how_to_give(folder)}"


def where_missing(root: Path, given: str) -> str:
    """Say where the folder of `path=` was looked for and is not, and what to give if it is somewhere else.

    Raises:
        DatasetMissing: see `path_below`.
    """
    place = path_below(root, given)
    why = f"{place} {'is not a folder' if place.exists() else 'does not exist'}"
    if Path(given).expanduser().is_absolute():
        return why
    here = Path(given).absolute()
    elsewhere = f", but {here} in the working directory does: give path={here}" if here.is_dir() else ""
    return f"path={given} is looked for under the data root, and {why}{elsewhere}"


def one_class(name: str, without_labels: str) -> str:
    """Say why labels of one class alone are refused, and which option leaves them aside."""
    return (
        f"has one class, {name}, which every encoder would predict: if its images have no labels, add "
        f"{without_labels}"
    )


def is_saved(folder: Path) -> bool:
    """Whether `save_to_disk` of the library `datasets` wrote the folder."""
    return any((folder / name).is_file() for name in _SAVED)


def split_folder(place: Path, split: str) -> Path | None:
    """Return the folder of a split (`train` or `test`) in a place, its name in any case; None without one."""
    if not place.is_dir():
        return None
    # Names first: to ask each of 100,000 images whether it is a folder takes minutes on a network disk.
    likely = [name for name in os.listdir(place) if name.lower() in FOLDERS[split]]
    there = sorted((name for name in likely if (place / name).is_dir()), reverse=True)
    by_name = {name.lower(): name for name in there} | {name: name for name in there}
    return next((place / by_name[name] for name in FOLDERS[split] if name in by_name), None)


def misread_layout(place: Path, classes: Iterable[str]) -> str:
    """Say why these folders of a place are no classes, and what to do; empty if they may be classes.

    "train_station" alone is a class; beside "test_images", "train_images" is a split.
    """
    names = list(classes)
    pair = [next(filter(like.fullmatch, names), None) for like in (_LIKE_TRAIN, _LIKE_TEST)]
    if None not in pair:
        return f"its folders {pair[0]} and {pair[1]} look like splits: call them train and test"
    if len(names) == 1 and split_folder(place / names[0], "train") is not None:
        return f"its only folder {names[0]} has a folder of training images: give path={place / names[0]}"
    return ""


def _folder(given: str) -> Path | None:
    """Return the folder that the text leads to, from the working directory or under the data root."""
    try:
        places = [Path(given).expanduser().absolute(), data_root() / given]
        return next((place for place in places if given and place.is_dir()), None)
    except (OSError, RuntimeError, ValueError):  # a long name; a user without a home; a NUL; no data root
        return None


def _is_laid_out(folder: Path) -> bool:
    return split_folder(folder, "train") is not None or any(folder.glob("*.parquet")) or is_saved(folder)


def _holds_images(folder: Path) -> bool:
    """Whether the first of the folder's own folders, in the order of their names, holds an image."""
    first = next((one for one in sorted(folder.iterdir()) if one.is_dir()), None)
    return first is not None and next(files_below(first, EXTENSIONS), None) is not None


def _how_to_give(folder: Path) -> str:
    """Return the sentences that say what to type for a folder."""
    if "," in str(folder):
        return f"The path {folder} has a comma, which no option of a dataset can have: rename the folder."
    if is_saved(folder):
        return f"For what save_to_disk wrote there, type {shlex.quote(f'{HUB}:path={folder}')}."
    if any(folder.glob("*.parquet")):
        return f"For the Parquet files of this folder, type {shlex.quote(f'{PARQUET}:path={folder}')}."
    train = split_folder(folder, "train")
    laid_out = train is not None
    shape = _first_shape(train or folder)
    size = _USUAL_SIZE if shape is None else min(*shape, _LARGEST_SIZE)
    loose = not laid_out and any(one.name.lower().endswith(EXTENSIONS) for one in folder.iterdir())
    typed = shlex.quote(_form(str(folder), str(size)) + (",labels=none" if loose else ""))
    chosen = "size= is the side in pixels to which images are resized, and yours to choose"
    if shape is not None:
        height, width = shape
        chosen += f"; the first image is {width} wide and {height} high"
    return f"For the images of this folder, type {typed} ({chosen})."


def _first_shape(folder: Path) -> tuple[int, int] | None:
    """Return height and width of one of the first images in a folder that can be read; None without one."""
    from PIL import Image

    for parts in islice(files_below(folder, EXTENSIONS), _LOOKED_AT):
        file = folder.joinpath(*parts)
        try:
            check_given(file)
            with Image.open(file) as image:
                return image.height, image.width
        except (FileRefused, OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            continue
    return None
