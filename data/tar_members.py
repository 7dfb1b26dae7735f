"""Tar files of samples, as webdataset has them: where the members of each sample lie, and what they hold.

The members of a sample stand together and have one name up to the first dot: `000017.jpg`, `000017.cls`.
Hidden members do not count: macOS's tar adds a `._000017.jpg`, which is no image, to a `000017.jpg`.
"""

import os
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from contrasweep.data.cache import while_unchanged
from contrasweep.data.image_files import MOST_BYTES
from contrasweep.data.own_folders import EXTENSIONS
from contrasweep.data.root import DatasetDamaged

LABEL, FACTS = ".cls", ".json"
"""What the name of a member ends in that holds the label alone, or a mapping with `label` and other facts."""

MOST_LABEL_BYTES = 2**20

_LOOKED_AT_END = 2**16
"""How many bytes are read from the end on, which zeros fill to a multiple of 10,240 bytes."""


@dataclass(frozen=True)
class Member:
    """A file within a tar file: where its bytes are."""

    start: int
    size: int


@dataclass(frozen=True)
class Sample:
    """An image as a member of a tar file, and what stands beside it.

    Attributes:
        name: its name, without an ending.
        image: the image.
        label: the member that holds the label alone, if there is one.
        facts: the member that holds several facts by key, if there is one.
    """

    name: str
    image: Member
    label: Member | None = None
    facts: Member | None = None


@while_unchanged(4096)
def samples_in(file: Path) -> tuple[Sample, ...]:
    """Return the samples of a tar file, in its order; only its headers are read.

    Raises:
        DatasetDamaged: it is no plain tar file, it ends too early or late (see `_check_end`), a sample has
            several images, or an image or a label is a link.
    """
    images: dict[str, Member] = {}
    beside: dict[str, dict[str, Member]] = {LABEL: {}, FACTS: {}}
    length = file.stat().st_size
    try:
        with tarfile.open(file, "r:") as tar:
            for entry in tar:
                key, ending = _key_and_ending(entry.name)
                if ending not in (*EXTENSIONS, *beside) or PurePosixPath(entry.name).name.startswith("."):
                    continue
                if entry.issym() or entry.islnk():
                    # Without its target, an image or a label would be missing, and nobody would notice.
                    raise DatasetDamaged(
                        f"{file}: {entry.name} is a link to {entry.linkname}; allowed: files, as "
                        "tar --dereference --hard-dereference packs them"
                    )
                if not entry.isreg():
                    continue
                member = Member(entry.offset_data, entry.size)
                if member.start + member.size > length:
                    raise DatasetDamaged(f"{file} ends within {entry.name}: it is not whole")
                if ending in beside:
                    beside[ending][key] = member
                elif key in images:
                    raise DatasetDamaged(f"{file}: sample {key} has several images")
                else:
                    images[key] = member
            _check_end(file, tar.offset)
    except tarfile.TarError as error:
        raise DatasetDamaged(f"{file} is no tar file, or is compressed: {error}") from error
    return tuple(
        Sample(key, image, beside[LABEL].get(key), beside[FACTS].get(key)) for key, image in images.items()
    )


def _check_end(file: Path, place: int) -> None:
    """Check that a tar file ends where no further header could be read, as Python's reader does not.

    Raises:
        DatasetDamaged: no block of zeros, which ends a tar file, is there, or something follows the zeros.
    """
    with file.open("rb") as opened:
        opened.seek(place)
        rest = opened.read(_LOOKED_AT_END)
    if len(rest) < tarfile.BLOCKSIZE or any(rest[: tarfile.BLOCKSIZE]):
        raise DatasetDamaged(
            f"{file} is not whole: at byte {place:,} there is neither another file nor the block of zeros "
            "that ends a tar file"
        )
    if any(rest):
        raise DatasetDamaged(
            f"{file} holds more after its end at byte {place:,}: join tar files with tar --concatenate, or "
            "keep them apart"
        )


def _key_and_ending(name: str) -> tuple[str, str]:
    """Return the name of a sample, and the ending of its member in small letters."""
    path = PurePosixPath(name)
    stem, dot, _ = path.name.partition(".")
    return str(path.with_name(stem)) if stem and dot else name, path.suffix.lower()


def read_members(file: Path, members: Sequence[Member], most: int = MOST_BYTES) -> list[bytes]:
    """Return the contents of members of a tar file.

    Raises:
        DatasetDamaged: the file cannot be read or has become shorter, or a member is larger than `most`.
    """
    if large := next((one for one in members if one.size > most), None):
        raise DatasetDamaged(f"{file}: a member has {large.size:,} bytes; allowed: at most {most:,}")
    try:
        # Each call opens the file anew: several threads and processes read it at once.
        place = os.open(file, os.O_RDONLY)
        try:
            found = [os.pread(place, one.size, one.start) for one in members]
        finally:
            os.close(place)
    except OSError as error:
        raise DatasetDamaged(f"{file} cannot be read: {error}") from error
    if any(len(content) != one.size for content, one in zip(found, members, strict=True)):
        raise DatasetDamaged(f"{file} has become shorter while it was in use")
    return found
