"""Where results live: a folder on any filesystem that pyarrow can open, written whole or not at all."""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import fs

from tuning.errors import InputError
from tuning.store.retry import ONCE, Retry

# Their PUT (or the completion of a multipart upload) makes an object visible whole, and they cannot rename.
OBJECT_STORES: Final = frozenset({"s3", "gcs", "abfs"})


class StoreError(InputError):
    """The results store cannot do what was asked; the message says what was given and what is wrong."""


@dataclass(frozen=True)
class Location:
    """A results folder: a filesystem and the folder's path on it. Picklable, so it travels to workers.

    All paths given to its methods are relative to ``root`` and use ``/``. An operation that the filesystem
    refuses is tried again, as ``retry`` says; one that is refused for good raises StoreUnavailable.
    """

    filesystem: fs.FileSystem
    root: str
    uri: str
    retry: Retry = field(default=Retry(), repr=False)

    def path(self, relative: str) -> str:
        """The path of ``relative`` on the filesystem."""
        return f"{self.root}/{relative}"

    def read(self, relative: str) -> bytes:
        """All bytes of one file.

        Raises:
            FileNotFoundError: there is no such file.
            OSError: it cannot be read.
        """
        path = self.path(relative)
        return self.retry.call(f"reading {path}", lambda: _read(self.filesystem, path))

    def write(self, relative: str, content: bytes) -> None:
        """Write one file so that any reader sees all of it, or the file it replaces, or nothing.

        Raises:
            OSError: it cannot be written.
        """
        path = self.path(relative)
        self.retry.call(f"writing {path}", lambda: _write_whole(self.filesystem, path, content))

    def files(self, folder: str) -> list[fs.FileInfo]:
        """The files directly inside ``folder``, unordered; none when the folder does not exist.

        Raises:
            OSError: the folder cannot be read.
        """
        path = self.path(folder)
        return self.retry.call(f"listing {path}", lambda: _files(self.filesystem, path))

    def delete(self, relative: str) -> None:
        """Delete one file; one that is already gone is no error.

        Raises:
            OSError: it cannot be deleted.
        """
        path = self.path(relative)
        self.retry.call(f"deleting {path}", lambda: _delete_if_there(self.filesystem, path))

    def reachable(self) -> bool:
        """Whether the filesystem answers, asked once: tells a store that is away from a file that is bad."""
        try:
            self.filesystem.get_file_info(self.root)
        except OSError:
            return False
        return True


def open_location(uri: str | Path, *, writable: bool = False) -> Location:
    """Open a results folder.

    Args:
        uri: a local path (``~`` is expanded) or any filesystem URI of pyarrow (``s3://``, ``gs://``, ...).
        writable: create the folder where it is missing and prove, by writing a file, that it takes results.

    Raises:
        StoreError: the URI is not understood, names a file, or cannot be reached or (if asked) written.
    """
    text = str(uri)
    if not text.strip():
        raise StoreError("The results location is empty; give a folder or a URI such as s3://bucket/folder.")
    try:
        if "://" in text:
            filesystem, root = fs.FileSystem.from_uri(text)
        else:
            filesystem, root = fs.LocalFileSystem(), Path(text).expanduser().absolute().as_posix()
        location = Location(filesystem, root.rstrip("/"), text)
        if filesystem.get_file_info(root).type == fs.FileType.File:
            raise StoreError(f"The results location {text} is a file; a folder is needed.")
    except StoreError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise StoreError(f"The results location {text} cannot be opened: {error}") from error
    if writable:
        _prove_writable(location)
    return location


def _prove_writable(location: Location) -> None:
    probe = f"_write-check-{uuid.uuid4().hex[:8]}"
    # Who has just mistyped a folder should hear of it now, and not after a minute.
    location = replace(location, retry=ONCE)
    try:
        location.write(probe, b"")
        location.delete(probe)
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"The results location {location.uri} cannot be written: {error}") from error


def _read(filesystem: fs.FileSystem, path: str) -> bytes:
    with filesystem.open_input_stream(path) as stream:
        return bytes(stream.read())


def _files(filesystem: fs.FileSystem, folder: str) -> list[fs.FileInfo]:
    selector = fs.FileSelector(folder, allow_not_found=True)
    return [info for info in filesystem.get_file_info(selector) if info.type == fs.FileType.File]


def _write_whole(filesystem: fs.FileSystem, target: str, content: bytes) -> None:
    if filesystem.type_name in OBJECT_STORES:
        _write_stream(filesystem, target, content)
        return
    folder, name = target.rsplit("/", 1)
    filesystem.create_dir(folder, recursive=True)
    # A leading underscore hides the unfinished file from every Parquet dataset reader, ours included.
    unfinished = f"{folder}/_{name}.{uuid.uuid4().hex[:8]}"
    try:
        if filesystem.type_name == "local":
            _write_local(unfinished, content)
            os.replace(unfinished, target)
        else:
            _write_stream(filesystem, unfinished, content)
            filesystem.move(unfinished, target)
    except OSError:
        # Whatever keeps the remains from going must not hide what went wrong before.
        with suppress(OSError):
            _delete_if_there(filesystem, unfinished)
        raise


def _write_local(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        # Without this a power cut may leave the new name on an empty file.
        os.fsync(file.fileno())


def _write_stream(filesystem: fs.FileSystem, path: str, content: bytes) -> None:
    with filesystem.open_output_stream(path) as stream:
        stream.write(content)


def _delete_if_there(filesystem: fs.FileSystem, path: str) -> None:
    try:
        filesystem.delete_file(path)
    except FileNotFoundError:
        return
