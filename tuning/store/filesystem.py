"""The results folder: on any filesystem that pyarrow can open, with files that appear whole or not at all.

An operation that fails is tried again: a network share may be away for a moment, a disk may be full.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
from pyarrow import fs

from contrasweep.given_files import FILE, FOLDER
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.files import create_file, replace_file, unfinished_name
from contrasweep.tuning.store import local
from contrasweep.tuning.store.filesystem_errors import in_words, is_refusal

log = logging.getLogger(__name__)

T = TypeVar("T")

# One PUT (or the end of a multipart upload) makes an object visible whole. These stores cannot rename.
OBJECT_STORES: Final = frozenset({"s3", "gcs", "abfs"})
# Google's library would try a request for 15 minutes; Amazon's gives up after 6 s.
_GCS_TRIES: Final = timedelta(seconds=10)


class StoreError(InputError):
    """The results store cannot do what was asked; the message says what was given and what is wrong."""


class StudyBusy(StoreError):
    """Another driver is running the study."""


class WrongKind(StoreError, OSError):
    """A path of the store is of the wrong kind: a folder, a pipe or a broken link in place of a file, ..."""


class StoreUnavailable(OSError):
    """The results store failed in all tries; its contents are unchanged."""


class StoreRefuses(StoreUnavailable, PermissionError):
    """The results store permits an operation no more; another try would give the same answer."""


# These errors are about the path, not the filesystem: another try would give the same answer.
_ANSWERS: Final = (FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError, WrongKind)


@dataclass(frozen=True)
class Retry:
    """How often, and after which waits, a failed operation is tried again.

    Attributes:
        waits: seconds before the second try, the third, ...
        wait: waits for a number of seconds.
    """

    waits: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0)
    wait: Callable[[float], None] = time.sleep

    def call(self, what: str, action: Callable[[], T]) -> T:
        """Return the result of the first try of `action` that succeeds.

        Args:
            what: names the action in messages.
            action: the operation; it may be called many times.

        Raises:
            FileNotFoundError, IsADirectoryError, ...: an error about the path; it is not tried again.
            StoreUnavailable: no try succeeded, or (StoreRefuses) the first was refused; the message gives the
                last error.
        """
        for done in range(len(self.waits) + 1):
            try:
                return action()
            except _ANSWERS:
                raise
            except OSError as error:
                if is_refusal(error):
                    raise StoreRefuses(f"the results store permits no {what}: {in_words(error)}") from error
                last = error
            if done < len(self.waits):
                log.warning("The store: %s failed, tried again in %g s: %s", what, self.waits[done], last)
                self.wait(self.waits[done])
        tries = f"{len(self.waits) + 1} times in {sum(self.waits):g} s" if self.waits else "once"
        raise StoreUnavailable(
            f"the results store cannot be used: {what} was tried {tries}; the last answer: {in_words(last)}"
        ) from last


PROBE_BYTES: Final = 4096
"""A full disk takes an empty file."""

ONCE: Final = Retry(waits=())
"""One try: for work that a user waits for, and for work that is repeated anyway."""


@dataclass(frozen=True)
class Location:
    """A results folder: a filesystem and the folder's path on it. Picklable, so it travels to workers.

    The methods take paths relative to ``root``, with ``/``. A failed operation is tried again as ``retry``
    says; if it fails in every try, StoreUnavailable is raised.
    """

    filesystem: fs.FileSystem
    root: str
    uri: str
    retry: Retry = field(default=Retry(), repr=False)

    def path(self, relative: str) -> str:
        """Return the path of ``relative`` on the filesystem."""
        return f"{self.root}/{relative}"

    def within(self, info: fs.FileInfo) -> str:
        """Return the path, relative to the results folder, of a file that ``files`` listed."""
        return str(info.path)[len(self.root) + 1 :]

    def read(self, relative: str) -> bytes:
        """Return all bytes of one file.

        Raises:
            FileNotFoundError: there is no such file.
            WrongKind: there is no file but something else.
            OSError: it cannot be read.
        """
        return self._call("reading", relative, lambda path: _read(self.filesystem, path))

    def open(self, relative: str) -> pa.NativeFile:
        """Open one file, of which parts can then be read; only the opening is tried again.

        Raises:
            FileNotFoundError: there is no such file.
            OSError: it cannot be opened.
        """
        return self._call("opening", relative, self.filesystem.open_input_file)

    def write(self, relative: str, content: bytes) -> None:
        """Write one file atomically: a reader sees the whole new file, or what was there before.

        Raises:
            WrongKind: a folder is in its place, or a file in the place of its folder.
            OSError: it cannot be written.
        """
        self._call("writing", relative, lambda path: _write_whole(self.filesystem, path, content))

    def create(self, relative: str, content: bytes) -> None:
        """Write one new file atomically. If several processes do so at once, one succeeds; in a bucket, all.

        Raises:
            FileExistsError: the file exists.
            WrongKind, OSError: as `write`.
        """
        failed = False

        def once(path: str) -> None:
            nonlocal failed
            try:
                _create_whole(self.filesystem, path, content)
            except FileExistsError:
                # It may be ours: of a try that had written it before it failed.
                if not failed or _read(self.filesystem, path) != content:
                    raise
            except OSError:
                failed = True
                raise

        self._call("writing", relative, once)

    def entries(self, folder: str, *, below: bool = False) -> list[fs.FileInfo]:
        """Return the files and folders directly inside ``folder``, unordered; none if it does not exist.

        Args:
            folder: the folder.
            below: include the contents of folders inside it.

        Raises:
            WrongKind: ``folder`` is no folder.
            OSError: the folder cannot be read.
        """
        return self._call("listing", folder, lambda path: _entries(self.filesystem, path, below), FOLDER)

    def is_folder(self, relative: str) -> bool:
        """Whether a folder is there; an object store has none without files."""
        info = self._call("listing", relative, self.filesystem.get_file_info, FOLDER)
        return bool(info.type == fs.FileType.Directory)

    def files(self, folder: str, *, below: bool = False) -> list[fs.FileInfo]:
        """Return the files among the ``entries`` of a folder."""
        return [info for info in self.entries(folder, below=below) if info.type == fs.FileType.File]

    def delete(self, relative: str) -> None:
        """Delete one file; a file that is already gone is no error.

        Raises:
            WrongKind: it is a folder.
            OSError: it cannot be deleted.
        """
        self._call("deleting", relative, lambda path: _delete_if_there(self.filesystem, path))

    def delete_folder(self, relative: str) -> None:
        """Delete a folder with all that is in it; one that is not there is no error.

        Raises:
            WrongKind: it is no folder.
            OSError: it cannot be deleted.
        """
        self._call("deleting", relative, lambda path: _delete_folder_if_there(self.filesystem, path), FOLDER)

    def _call(self, doing: str, relative: str, action: Callable[[str], T], belongs: str = FILE) -> T:
        """Run an action on a path where a file (or a folder) belongs, again and again if it fails."""
        path = self.path(relative)

        def once() -> T:
            try:
                return action(path)
            except OSError as error:
                odd = local.oddity(path, belongs) if _is_local(self.filesystem) else None
                if odd is not None:
                    raise WrongKind(odd) from error
                raise

        return self.retry.call(f"{doing} {path}", once)

    def reachable(self) -> bool:
        """Whether the filesystem answers; one try. It tells an unreachable store from a damaged file."""
        try:
            self.filesystem.get_file_info(self.root)
        except OSError:
            return False
        return True


def open_location(uri: str | Path, *, writable: bool = False) -> Location:
    """Open a results folder.

    Args:
        uri: a local path (``~`` is expanded) or any filesystem URI of pyarrow (``s3://``, ``gs://``, ...).
        writable: create a missing folder, and write a file to prove that results can be written.

    Raises:
        StoreError: the URI is not understood, contains a secret, names a file or a missing bucket, or the
            folder cannot be reached or (with ``writable``) written.
    """
    text = str(uri)
    if not text.strip():
        raise StoreError("The results location is empty; give a folder or a URI such as s3://bucket/folder.")
    try:
        if _has_secret(text):
            raise StoreError(
                "The results location contains a secret, which would be stored with the results: set the "
                "variables of your store instead, such as AWS_SECRET_ACCESS_KEY or AZURE_CLIENT_SECRET "
                "(docs/store.md)."
            )
        filesystem, root = _open_filesystem(text)
        location = Location(filesystem, root.rstrip("/"), text)
        kind = filesystem.get_file_info(location.root).type
        if kind not in (fs.FileType.Directory, fs.FileType.NotFound):
            raise StoreError(f"The results location {text} is a file; a folder is needed.")
        if kind == fs.FileType.NotFound:
            _refuse_missing_bucket(location)
    except StoreError:
        raise
    except (OSError, ValueError, RuntimeError, pa.ArrowException) as error:  # a user without a home
        raise StoreError(f"The results location {text} cannot be opened: {in_words(error)}") from error
    if writable:
        _prove_writable(location)
    return location


def _open_filesystem(text: str) -> tuple[fs.FileSystem, str]:
    """Return the filesystem of a path or URI, and the path on it."""
    if "://" not in text:
        return fs.LocalFileSystem(), Path(text).expanduser().absolute().as_posix()
    filesystem, root = fs.FileSystem.from_uri(text)
    return _with_options(filesystem), root


def _with_options(filesystem: fs.FileSystem) -> fs.FileSystem:
    """Return a filesystem with the options that its URI cannot express, or did not."""
    if filesystem.type_name not in ("s3", "gcs"):
        return filesystem
    rebuild, (options,) = filesystem.__reduce__()
    if filesystem.type_name == "s3":
        # With these, a small file takes one request instead of three.
        return rebuild({**options, "allow_delayed_open": True, "background_writes": False})
    return rebuild({**options, "retry_time_limit": options["retry_time_limit"] or _GCS_TRIES})


def _has_secret(text: str) -> bool:
    """Whether a URI contains a password (for S3, the secret key) or the secret of an Azure application."""
    if "://" not in text:
        return False
    parts = urlsplit(text)
    return parts.password is not None or "client_secret" in parse_qs(parts.query, keep_blank_values=True)


def _refuse_missing_bucket(location: Location) -> None:
    if location.filesystem.type_name not in OBJECT_STORES:
        return
    bucket = location.root.split("/", 1)[0]
    # A user may have rights on a folder of a bucket but not on the bucket: then the write test decides.
    with suppress(OSError):
        if location.filesystem.get_file_info(bucket).type == fs.FileType.NotFound:
            raise StoreError(f"The results location {location.uri}: there is no bucket {bucket}.")


def _prove_writable(location: Location) -> None:
    probe = f"_write-check-{uuid.uuid4().hex[:8]}"
    # A mistyped folder should be reported at once, not after a minute of retries.
    location = replace(location, retry=ONCE)
    try:
        location.write(probe, bytes(PROBE_BYTES))
        location.delete(probe)
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"The results location {location.uri} cannot be written: {error}") from error


def _is_local(filesystem: fs.FileSystem) -> bool:
    return bool(filesystem.type_name == "local")


def _read(filesystem: fs.FileSystem, path: str) -> bytes:
    if _is_local(filesystem):
        return local.read(path)
    with filesystem.open_input_stream(path) as stream:
        return bytes(stream.read())


def _entries(filesystem: fs.FileSystem, folder: str, below: bool) -> list[fs.FileInfo]:
    if _is_local(filesystem):
        return local.entries(folder, below)
    selector = fs.FileSelector(folder, allow_not_found=True, recursive=below)
    try:
        return list(filesystem.get_file_info(selector))
    except FileNotFoundError:
        # Arrow lists a folder, and then asks whether it is there: another writer made it in between.
        return list(filesystem.get_file_info(selector))


def _write_whole(filesystem: fs.FileSystem, target: str, content: bytes) -> None:
    if filesystem.type_name in OBJECT_STORES:
        _write_stream(filesystem, target, content)
        return
    folder, name = target.rsplit("/", 1)
    filesystem.create_dir(folder, recursive=True)
    if _is_local(filesystem):
        replace_file(Path(target), content)
        return
    unfinished = f"{folder}/{unfinished_name(name)}"
    try:
        _write_stream(filesystem, unfinished, content)
        filesystem.move(unfinished, target)
    except OSError:
        with suppress(OSError):
            _delete_if_there(filesystem, unfinished)
        raise


def _create_whole(filesystem: fs.FileSystem, target: str, content: bytes) -> None:
    if _is_local(filesystem):
        filesystem.create_dir(target.rsplit("/", 1)[0], recursive=True)
        create_file(Path(target), content)
    elif filesystem.get_file_info(target).type == fs.FileType.NotFound:
        _write_whole(filesystem, target, content)
    else:
        raise FileExistsError(target)


def _write_stream(filesystem: fs.FileSystem, path: str, content: bytes) -> None:
    with filesystem.open_output_stream(path) as stream:
        stream.write(content)


def _delete_folder_if_there(filesystem: fs.FileSystem, path: str) -> None:
    with suppress(FileNotFoundError):
        filesystem.delete_dir(path)


def _delete_if_there(filesystem: fs.FileSystem, path: str) -> None:
    with suppress(FileNotFoundError):
        filesystem.delete_file(path)
