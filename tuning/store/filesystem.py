"""Where results live: a folder on any filesystem that pyarrow can open, written whole or not at all."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import fs

from tuning.errors import InputError

# Their PUT (or the completion of a multipart upload) makes an object visible whole, and they cannot rename.
OBJECT_STORES: Final = frozenset({"s3", "gcs", "abfs"})


class StoreError(InputError):
    """The results store cannot do what was asked; the message says what was given and what is wrong."""


@dataclass(frozen=True)
class Location:
    """A results folder: a filesystem and the folder's path on it. Picklable, so it travels to workers.

    All paths given to its methods are relative to ``root`` and use ``/``.
    """

    filesystem: fs.FileSystem
    root: str
    uri: str

    def path(self, relative: str) -> str:
        """The path of ``relative`` on the filesystem."""
        return f"{self.root}/{relative}"

    def read(self, relative: str) -> bytes:
        """All bytes of one file.

        Raises:
            FileNotFoundError: there is no such file.
            OSError: it cannot be read.
        """
        with self.filesystem.open_input_stream(self.path(relative)) as stream:
            return bytes(stream.read())

    def write(self, relative: str, content: bytes) -> None:
        """Write one file so that any reader sees all of it, or the file it replaces, or nothing.

        Raises:
            OSError: it cannot be written.
        """
        target = self.path(relative)
        if self.filesystem.type_name in OBJECT_STORES:
            _write_stream(self.filesystem, target, content)
            return
        folder, name = target.rsplit("/", 1)
        self.filesystem.create_dir(folder, recursive=True)
        # A leading underscore hides the unfinished file from every Parquet dataset reader, ours included.
        unfinished = f"{folder}/_{name}.{uuid.uuid4().hex[:8]}"
        try:
            if self.filesystem.type_name == "local":
                _write_local(unfinished, content)
                os.replace(unfinished, target)
            else:
                _write_stream(self.filesystem, unfinished, content)
                self.filesystem.move(unfinished, target)
        except OSError:
            _delete_if_there(self.filesystem, unfinished)
            raise

    def files(self, folder: str) -> list[fs.FileInfo]:
        """The files directly inside ``folder``, unordered; none when the folder does not exist."""
        selector = fs.FileSelector(self.path(folder), allow_not_found=True)
        return [info for info in self.filesystem.get_file_info(selector) if info.type == fs.FileType.File]

    def delete(self, relative: str) -> None:
        """Delete one file; one that is already gone is no error."""
        _delete_if_there(self.filesystem, self.path(relative))


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
    try:
        location.write(probe, b"")
        location.delete(probe)
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"The results location {location.uri} cannot be written: {error}") from error


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
