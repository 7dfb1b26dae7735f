"""The files that a command writes: checked before the work that fills them, written whole or not at all."""

import os
import uuid
from collections.abc import Sequence
from pathlib import Path

from tuning.errors import InputError


def check_file(path: Path, option: str = "", endings: Sequence[str] = ()) -> None:
    """Raise InputError unless a file can be written into `path`; folders that it lacks are made on writing.

    Args:
        path: the file.
        option: what gave it, for the message.
        endings: that it may have; empty: any.
    """
    if endings and path.suffix not in endings:
        raise InputError(f"{_given(option, path)}: give a file that ends in {', '.join(endings)}")
    if path.is_dir():
        raise InputError(f"{_given(option, path)} is a folder: give a file")
    _refuse_unwritable(path, option)


def check_folder(path: Path, option: str = "") -> None:
    """Raise InputError unless files can be written into the folder `path`, which is made on writing."""
    if path.exists() and not path.is_dir():
        raise InputError(f"{_given(option, path)} is a file: give a folder")
    _refuse_unwritable(path, option)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that who reads it meanwhile gets the old one or the new one, whole.

    A link or a device (`/dev/stdout`) is not replaced by a file but written through.
    """
    written = content.encode() if isinstance(content, str) else content
    if path.is_symlink() or (path.exists() and not path.is_file()):
        path.write_bytes(written)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"_{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        unfinished.write_bytes(written)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _refuse_unwritable(path: Path, option: str) -> None:
    path = path.absolute()
    there = next(one for one in (path, *path.parents) if one.exists())
    if not os.access(there, os.W_OK) or (there != path and not there.is_dir()):
        raise InputError(f"{_given(option, path)} cannot be written: {there} is no folder that can")


def _given(option: str, path: Path) -> str:
    return f"{option} {path}".strip()
