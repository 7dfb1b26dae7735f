"""Where results live: a folder on any filesystem that pyarrow can open, written whole or not at all.

A filesystem that refuses an operation is asked again: a share is away for a moment, a disk has no room yet.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.files import replace_file

log = logging.getLogger(__name__)

T = TypeVar("T")

# Their PUT (or the completion of a multipart upload) makes an object visible whole, and they cannot rename.
OBJECT_STORES: Final = frozenset({"s3", "gcs", "abfs"})

_OBJECT_STORE_ERRORS: Final = {
    "NETWORK_CONNECTION": "nobody answers there; look at the address (endpoint_override, scheme, region)",
    "ACCESS_DENIED": "the credentials (AWS_ACCESS_KEY_ID, profile, role) lack a right, or none were found",
    "INVALID_ACCESS_KEY_ID": "the store does not know the access key",
    "INVALID_CLIENT_TOKEN_ID": "the store does not know the access key",
    "SIGNATURE_DOES_NOT_MATCH": "the secret key is not the access key's",
    "NO_SUCH_BUCKET": "there is no such bucket",
}
"""By a mark in the message of AWS's library, what it means to who gave the location."""

# These say something about the path and not about the filesystem: to ask again would give the same answer.
_ANSWERS: Final = (
    FileNotFoundError,
    FileExistsError,
    PermissionError,
    NotADirectoryError,
    IsADirectoryError,
)


class StoreError(InputError):
    """The results store cannot do what was asked; the message says what was given and what is wrong."""


class StudyBusy(StoreError):
    """Another driver is at work on the study."""


class StoreUnavailable(OSError):
    """The results store cannot be used, and went on so through all tries; what is in it is as it was."""


@dataclass(frozen=True)
class Retry:
    """How often, and after how long, a refused operation is tried again.

    Attributes:
        waits: seconds before the second try, the third, ...
        wait: waits so many seconds.
    """

    waits: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0)
    wait: Callable[[float], None] = time.sleep

    def call(self, what: str, action: Callable[[], T]) -> T:
        """Return what `action` returns, at the first try that succeeds.

        Args:
            what: is tried, for the messages.
            action: may be called many times.

        Raises:
            FileNotFoundError, PermissionError, ...: the filesystem's answer about a path, at once.
            StoreUnavailable: no try succeeded; it names the last error.
        """
        for seconds in self.waits:
            try:
                return action()
            except _ANSWERS:
                raise
            except OSError as error:
                log.warning("The store: %s failed, tried again in %g s: %s", what, seconds, error)
                self.wait(seconds)
        try:
            return action()
        except _ANSWERS:
            raise
        except OSError as error:
            raise StoreUnavailable(self._message(what, error)) from error

    def _message(self, what: str, error: OSError) -> str:
        tries = f"{len(self.waits) + 1} times in {sum(self.waits):g} s" if self.waits else "once"
        return f"the results store cannot be used: {what} was tried {tries}; the last answer: {error}"


ONCE: Final = Retry(waits=())
"""For what a user waits for, and what is repeated anyway."""


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

    def within(self, info: fs.FileInfo) -> str:
        """The path within the results folder of a file that ``files`` listed."""
        return str(info.path)[len(self.root) + 1 :]

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

    def files(self, folder: str, *, below: bool = False) -> list[fs.FileInfo]:
        """The files directly inside ``folder``, unordered; none when the folder does not exist.

        Args:
            folder: the folder.
            below: also those in folders inside it.

        Raises:
            OSError: the folder cannot be read.
        """
        path = self.path(folder)
        return self.retry.call(f"listing {path}", lambda: _files(self.filesystem, path, below))

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
        StoreError: the URI is not understood, carries a secret, names a file or a bucket that is not there,
            or cannot be reached or (if asked) written.
    """
    text = str(uri)
    if not text.strip():
        raise StoreError("The results location is empty; give a folder or a URI such as s3://bucket/folder.")
    if has_secret(text):
        raise StoreError(
            "The results location holds a secret key, which would be kept with the results: "
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead (docs/store.md)."
        )
    try:
        filesystem, root = open_filesystem(text)
        location = Location(filesystem, root.rstrip("/"), text)
        kind = filesystem.get_file_info(location.root).type
        if kind == fs.FileType.File:
            raise StoreError(f"The results location {text} is a file; a folder is needed.")
        if kind == fs.FileType.NotFound:
            _refuse_missing_bucket(location)
    except StoreError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise StoreError(f"The results location {text} cannot be opened: {_in_words(error)}") from error
    if writable:
        _prove_writable(location)
    return location


def open_filesystem(text: str) -> tuple[fs.FileSystem, str]:
    """Return the filesystem of a path or URI, and the path on it."""
    if "://" not in text:
        return fs.LocalFileSystem(), Path(text).expanduser().absolute().as_posix()
    filesystem, root = fs.FileSystem.from_uri(text)
    if filesystem.type_name == "s3":
        # A URI cannot say so, but a file that is written in one go takes one request and not three.
        rebuild, (options,) = filesystem.__reduce__()
        filesystem = rebuild({**options, "allow_delayed_open": True, "background_writes": False})
    return filesystem, root


def has_secret(text: str) -> bool:
    """Whether a URI carries a password (of S3, the secret key)."""
    return "://" in text and urlsplit(text).password is not None


def _refuse_missing_bucket(location: Location) -> None:
    if location.filesystem.type_name not in OBJECT_STORES:
        return
    bucket = location.root.split("/", 1)[0]
    # Who may use a folder of a bucket may be forbidden to ask for the bucket: then the writing will tell.
    with suppress(OSError):
        if location.filesystem.get_file_info(bucket).type == fs.FileType.NotFound:
            raise StoreError(f"The results location {location.uri}: there is no bucket {bucket}.")


def _in_words(error: BaseException) -> str:
    """Return the error, with what to look at where an object store gave it."""
    text = str(error)
    for mark, meaning in _OBJECT_STORE_ERRORS.items():
        if mark in text:
            return f"{meaning} ({text})"
    return text


def _prove_writable(location: Location) -> None:
    probe = f"_write-check-{uuid.uuid4().hex[:8]}"
    # Who has just mistyped a folder should hear of it now, and not after a minute.
    location = replace(location, retry=ONCE)
    try:
        location.write(probe, b"")
        location.delete(probe)
    except (OSError, pa.ArrowException) as error:
        raise StoreError(
            f"The results location {location.uri} cannot be written: {_in_words(error)}"
        ) from error


def _read(filesystem: fs.FileSystem, path: str) -> bytes:
    with filesystem.open_input_stream(path) as stream:
        return bytes(stream.read())


def _files(filesystem: fs.FileSystem, folder: str, below: bool) -> list[fs.FileInfo]:
    selector = fs.FileSelector(folder, allow_not_found=True, recursive=below)
    return [info for info in filesystem.get_file_info(selector) if info.type == fs.FileType.File]


def _write_whole(filesystem: fs.FileSystem, target: str, content: bytes) -> None:
    if filesystem.type_name in OBJECT_STORES:
        _write_stream(filesystem, target, content)
        return
    folder, name = target.rsplit("/", 1)
    filesystem.create_dir(folder, recursive=True)
    if filesystem.type_name == "local":
        replace_file(Path(target), content)
        return
    # Named as `replace_file` does, for the same reasons.
    unfinished = f"{folder}/_{name}.{uuid.uuid4().hex[:8]}"
    try:
        _write_stream(filesystem, unfinished, content)
        filesystem.move(unfinished, target)
    except OSError:
        with suppress(OSError):
            _delete_if_there(filesystem, unfinished)
        raise


def _write_stream(filesystem: fs.FileSystem, path: str, content: bytes) -> None:
    with filesystem.open_output_stream(path) as stream:
        stream.write(content)


def _delete_if_there(filesystem: fs.FileSystem, path: str) -> None:
    try:
        filesystem.delete_file(path)
    except FileNotFoundError:
        return
