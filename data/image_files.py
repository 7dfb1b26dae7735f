"""The content of an image file, read whole."""

from pathlib import Path

from contrasweep.data.root import DatasetDamaged
from contrasweep.given_files import MIB, FileRefused, read_given

MOST_BYTES = 256 * MIB
"""The size of the largest image file that is read."""


def image_bytes(file: Path) -> bytes:
    """Return the content of an image file.

    Raises:
        DatasetDamaged: it is missing, no regular file, or larger than `MOST_BYTES`.
    """
    try:
        return read_given(file, MOST_BYTES)
    except FileRefused as error:
        raise DatasetDamaged(str(error)) from error
