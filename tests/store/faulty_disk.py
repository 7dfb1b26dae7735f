"""A disk that fails on demand: full, away, or with one file that cannot be read."""

import errno
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import fs

from contrasweep.tuning.store import Location
from contrasweep.tuning.store.filesystem import Retry


@dataclass
class FaultyDisk(fs.FileSystemHandler):
    """A local disk with its state in a file, so that all processes that use it see the same state.

    The file `switch` holds `full` (nothing can be written), `refuses` (nothing may be written), `away`
    (nothing works), or the path of a file that cannot be read. Without `switch`, everything works.
    `before_write` is called once.
    """

    switch: Path
    before_write: Callable[[], None] | None = None

    def get_type_name(self) -> str:
        return "faulty"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> Any:
        return self._disk().get_file_info(paths)

    def get_file_info_selector(self, selector: fs.FileSelector) -> Any:
        return self._disk().get_file_info(selector)

    def open_input_stream(self, path: str) -> Any:
        return self._disk(path).open_input_stream(path)

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        action, self.before_write = self.before_write, None
        if action is not None:
            action()
        if self._state() == "full":
            raise OSError(errno.ENOSPC, "No space left on device")
        if self._state() == "refuses":
            raise PermissionError(errno.EPERM, "Operation not permitted")
        return self._disk().open_output_stream(path)

    def move(self, source: str, target: str) -> None:
        self._disk().move(source, target)

    def create_dir(self, path: str, recursive: bool) -> None:
        self._disk().create_dir(path, recursive=recursive)

    def delete_file(self, path: str) -> None:
        self._disk().delete_file(path)

    def delete_dir(self, path: str) -> None:
        self._disk().delete_dir(path)

    def _disk(self, path: str = "") -> fs.LocalFileSystem:
        if self._state() in ("away", path):
            raise OSError(errno.EIO, "Input/output error")
        return fs.LocalFileSystem()

    def _state(self) -> str:
        return self.switch.read_text() if self.switch.exists() else "well"

    def _unused(self, *_: Any) -> None:
        raise NotImplementedError

    copy_file = delete_dir_contents = delete_root_dir_contents = _unused
    open_append_stream = open_input_file = _unused


@dataclass(frozen=True)
class Waits:
    """Records waits instead of waiting; wait number `repaired_after`, of any process, mends the disk."""

    notes: Path
    switch: Path
    repaired_after: int = 10**9

    def __call__(self, seconds: float) -> None:
        with self.notes.open("a") as notes:
            notes.write(f"{seconds}\n")
        if len(self.noted) == self.repaired_after:
            self.switch.unlink(missing_ok=True)

    @property
    def noted(self) -> list[float]:
        return [float(line) for line in self.notes.read_text().splitlines()] if self.notes.exists() else []


def faulty_location(folder: Path, results: Path, repaired_after: int = 10**9) -> Location:
    """A results folder on a faulty disk; `folder` holds the switch and the recorded waits."""
    switch = folder / "switch"
    waits = Waits(folder / "waits", switch, repaired_after)
    return Location(fs.PyFileSystem(FaultyDisk(switch)), str(results), str(results), retry=Retry(wait=waits))
