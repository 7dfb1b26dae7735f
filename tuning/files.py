"""The files that a command writes: checked before the work that fills them, written whole or not at all."""

import os
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from contrasweep.tuning.errors import InputError


def check_file(path: Path, option: str = "", endings: Sequence[str] = ()) -> None:
    """Raise InputError unless a file can be written into `path`; folders that it lacks are made on writing.

    Args:
        path: the file.
        option: what gave it, for the message.
        endings: that it may have; empty: any.
    """
    given = f"{option} {path}".strip()
    if endings and path.suffix not in endings:
        raise InputError(f"{given}: give a file that ends in {', '.join(endings)}")
    if os.path.isdir(path):
        raise InputError(f"{given} is a folder: give a file")
    target = _target(path)
    _refuse_unwritable(target, given)
    if os.path.isfile(target):
        _refuse_unwritable(target.parent, given)  # where the new one is made, before it takes the place


def check_folder(path: Path, option: str = "") -> None:
    """Raise InputError unless files can be written into the folder `path`, which is made on writing."""
    given = f"{option} {path}".strip()
    if os.path.exists(path) and not os.path.isdir(path):
        raise InputError(f"{given} is a file: give a folder")
    _refuse_unwritable(path.absolute(), given)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that who reads it meanwhile gets the old one or the new one, whole.

    A link stays one, to the new file; what is no file (`/dev/stdout`) is written through.
    """
    written = content.encode() if isinstance(content, str) else content
    target = _target(path)
    if target.exists() and not target.is_file():
        target.write_bytes(written)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_file(target, written)


def replace_file(target: Path, content: bytes) -> None:
    """Put a file in the place of `target`, in a folder that is there; a kill leaves the old or the new."""
    # A leading underscore hides the unfinished file from every Parquet dataset reader, ours included.
    unfinished = target.with_name(f"_{target.name}.{uuid.uuid4().hex[:8]}")
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            # Without this a power cut may leave the new name on an empty file.
            os.fsync(file.fileno())
        os.replace(unfinished, target)
    except BaseException:
        # Whatever keeps the remains from going must not hide what went wrong before.
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


def _target(path: Path) -> Path:
    """Return what a path leads to; a device stays as given: behind it may be a pipe, which has no path."""
    device = os.path.exists(path) and not os.path.isfile(path)
    return path.absolute() if device else Path(os.path.realpath(path))


def _refuse_unwritable(path: Path, given: str) -> None:
    # os.path, for where a folder may not be searched pathlib raises.
    there = next(one for one in (path, *path.parents) if os.path.exists(one))
    if there != path and not os.path.isdir(there):
        raise InputError(f"{given} cannot be written: {there} is no folder")
    if not os.access(there, os.W_OK):
        raise InputError(f"{given} cannot be written: no permission for {there}")
