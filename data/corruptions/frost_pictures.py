"""The five pictures of frost, which come with ImageNet-C's code and are read from an installed package.

The package `imagecorruptions` (Apache 2.0) holds them as they are in the code of ImageNet-C and of Corrupted
CIFAR-10, bit for bit. It is not imported, so that none of what it depends on is needed.
"""

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from contrasweep.data.root import DatasetDamaged, DatasetMissing

PACKAGE = "imagecorruptions"
INSTALL = f"pip install --no-deps {PACKAGE}"

FROST_PICTURES: Mapping[str, str] = {
    "frost1.png": "ff9f907860bd7a835d459e32f9d588062b7f61ee267343cc7222b56753a14755",
    "frost2.png": "fe211a89b336999c207a852ce05818d4545d0b57c5beadd824b4cc9d9a9b6137",
    "frost3.png": "2d0d50b4a9bb213f38b024ef7768731bb83cc08d2f26b5766bbc167cdfa0e504",
    "frost4.jpg": "3f8b91ca1a9fa7167b09e773da53f5ae60d0a1fd88f02a783f6e328a72887f6e",
    "frost5.jpg": "5fc6a19df4a429ba68abdcc8f8a4278d4c9f81c9ccafd2c92ab0c8cf8992ebd2",
}
"""The pictures with their SHA-256. The released code lists a sixth, `frost6.jpg`, and never draws it."""

REDUCED = 5
"""The pictures are used at a fifth of their size."""


def check_frost_pictures() -> None:
    """Check that the package is installed and holds the published pictures.

    Raises:
        DatasetMissing: the package or a picture is missing; the message says what to install.
        DatasetDamaged: a picture is another one.
    """
    folder = _folder()
    for name, expected in FROST_PICTURES.items():
        file = folder / name
        if not file.is_file():
            raise DatasetMissing(f"{file} does not exist. Install {PACKAGE} again: {INSTALL}")
        if hashlib.sha256(file.read_bytes()).hexdigest() != expected:
            raise DatasetDamaged(f"{file} is not the published picture. Install {PACKAGE} again: {INSTALL}")


@cache
def frost_pictures() -> tuple[NDArray[np.uint8], ...]:
    """Return the pictures, uint8 ``(h, w, 3)``, at a fifth of their size.

    As in the released code they are not smoothed: every fifth pixel is kept, from the third.

    Raises:
        DatasetMissing: see `check_frost_pictures`.
    """
    from PIL import Image

    check_frost_pictures()
    pictures = []
    for name in FROST_PICTURES:
        with Image.open(_folder() / name) as picture:
            levels = np.asarray(picture.convert("RGB"))
        pictures.append(levels[REDUCED // 2 :: REDUCED, REDUCED // 2 :: REDUCED].copy())
    return tuple(pictures)


def _folder() -> Path:
    found = find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise DatasetMissing(
            f"the pictures of frost come with the package {PACKAGE}, which is not installed: {INSTALL} "
            "(what it depends on is not needed)"
        )
    return Path(found.submodule_search_locations[0]) / "frost"
