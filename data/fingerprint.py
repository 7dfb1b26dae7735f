"""The fingerprint of files: cheap to take of very many, and the same wherever they lie.

All names and sizes count, and of the contents some blocks at even distances. Times of change and the order
in which a file system lists its files do not count. Nothing is decoded.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from contrasweep.data.listing import file_state, names_below

BLOCKS = 64
"""How many blocks of a split's contents are read."""

BLOCK_BYTES = 2**16
"""The length of a block."""


States = tuple[tuple[int, int], ...]
"""Size and time of change of some files."""


@dataclass(frozen=True)
class SplitFiles:
    """The files of a split.

    Attributes:
        names: their names below the folder of the split, in the dataset's order.
        sizes: in bytes; -1 of a missing file.
        read: returns at most so many bytes of a file: `read(row, start, count)`.
    """

    names: Sequence[str]
    sizes: Sequence[int]
    read: Callable[[int, int, int], bytes]


@dataclass(frozen=True)
class Listing:
    """Files of this machine by their names below a folder, in the dataset's order."""

    folder: Path
    names: tuple[str, ...]

    def places(self) -> list[str]:
        """Return paths as texts: of 100,000 files, making `Path`s would take longer than all else."""
        folder = str(self.folder)
        return [f"{folder}/{name}" for name in self.names]


def fingerprint_below(train: Listing, test: Listing | None) -> str:
    """Return the fingerprint of files of this machine, see `fingerprint_of`.

    A process remembers it until one of the files whose contents count has another size or time of change: a
    look at a million files takes seconds, and minutes on a network's disk.
    """
    splits = [train] if test is None else [train, test]
    return _remembered(train, test, tuple(map(_sampled_states, splits)))


def state_below(folder: Path) -> tuple[tuple[str, ...], States]:
    """Return what changes with a name below a folder, and with the files that a fingerprint would read."""
    names = names_below(folder, ("",))
    return names, _sampled_states(Listing(folder, names))


def fingerprint_of_file(file: Path) -> str:
    """Return the fingerprint of a file that an option of a dataset names; the folder does not count."""
    return fingerprint_below(Listing(file.parent, (file.name,)), None)


@lru_cache(maxsize=4)
def _remembered(train: Listing, test: Listing | None, states: tuple[States, ...]) -> str:
    return fingerprint_of(_files(train), None if test is None else _files(test))


def _sampled_states(listing: Listing) -> States:
    names = (listing.names[row] for row in sampled_rows(len(listing.names)))
    return tuple(file_state(f"{listing.folder}/{name}") for name in names)


def _files(listing: Listing) -> SplitFiles:
    places = listing.places()
    sizes = [file_state(place)[0] for place in places]
    return SplitFiles(listing.names, sizes, lambda row, start, count: _read(places[row], start, count))


def fingerprint_of(train: SplitFiles, test: SplitFiles | None, blocks: int = BLOCKS) -> str:
    """Return the fingerprint of the files of both splits; no `test`: it is cut off the training images."""
    digest = hashlib.blake2b(digest_size=8)
    for split, files in (("train", train), ("test", test)):
        if files is None:
            continue
        digest.update(f"\n{split} {len(files.names)}\n".encode())
        listed = (f"{size} {name}\0" for name, size in zip(files.names, files.sizes, strict=True))
        # A name may hold bytes that are no UTF-8.
        digest.update("".join(listed).encode(errors="surrogateescape"))
        for row, start in _blocks(files.sizes, blocks):
            digest.update(files.read(row, start, BLOCK_BYTES))
    return digest.hexdigest()


def sampled_rows(count: int, most: int = BLOCKS) -> list[int]:
    """Return at most `most` of so many rows, at even distances."""
    return [number * count // most for number in range(most)] if count > most else list(range(count))


def _blocks(sizes: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Yield row and start of the blocks that are read: one of each of some files, or several of few files."""
    rows = sampled_rows(len(sizes), most)
    for row in rows:
        last = max(0, sizes[row] - BLOCK_BYTES)
        each = min(most // len(rows), -(-sizes[row] // BLOCK_BYTES))
        yield from ((row, last * number // max(1, each - 1)) for number in range(each))


def _read(place: str, start: int, count: int) -> bytes:
    try:
        with open(place, "rb", buffering=0) as file:
            file.seek(start)
            return file.read(count) or b""
    except OSError:  # who loads the images says what is wrong with the file
        return b""
