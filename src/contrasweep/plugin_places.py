"""The lines of plug-ins that errors come through: what users are told of a plug-in that fails."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from traceback import walk_tb

from contrasweep.plugin_packages import code_of, distribution_name, entries_of_plugins, package_of

SUSPECTED = "the run uses "
"""How a note begins that says on an error which plug-ins may be its cause."""


@dataclass(frozen=True)
class PluginPlace:
    """A line of a plug-in's code.

    Attributes:
        distribution: the name of the plug-in's distribution.
        file: the file, from the plug-in's package on.
        line: the number of the line.
        function: the function that the line belongs to; None for a line that is no Python.
    """

    distribution: str
    file: str
    line: int
    function: str | None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}"
        return place if self.function is None else f"{place} in {self.function}"


def plugin_place(error: BaseException) -> PluginPlace | None:
    """Return the innermost line of a plug-in that an error came through; None if it came through none.

    If the error was raised from another one, that one's lines count too. An error that another process has
    sent has no lines.
    """
    packages = {package_of(entry): entry for entry in entries_of_plugins()}
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, SyntaxError) and (unread := _unread_line(cause, packages)) is not None:
            return unread
        for frame, line in reversed(list(walk_tb(cause.__traceback__))):
            module, code = str(frame.f_globals.get("__name__")), frame.f_code
            entry = packages.get(module.partition(".")[0])
            if entry is not None:
                return PluginPlace(
                    distribution_name(entry), _from_package(module, code.co_filename), line, code.co_name
                )
        cause = cause.__cause__
    return None


def with_plugin_place(error: BaseException) -> str:
    """Return the type and the text of an error, and the line of a plug-in that it came through, if any."""
    place = plugin_place(error)
    told = _told(error, place)
    if place is None:
        notes = _suspicions(error)
        return "; ".join([told.removesuffix("."), *notes]) if notes else told
    return f"{told.removesuffix('.')}, at {place}"


def plugin_fault(error: BaseException) -> str | None:
    """Return the sentence about an error that came through a plug-in, or is suspected to."""
    place = plugin_place(error)
    if place is None:
        return with_plugin_place(error) if _suspicions(error) else None
    return f"error in the plug-in {place.distribution}, {place}: {_told(error, place)}"


def raised_by_plugin(error: BaseException) -> bool:
    """Whether the code of a plug-in raised what is no Exception, such as SystemExit, which ends a process.

    The handler of a signal may raise it in the midst of a plug-in's code, as Ray's does to end a worker. The
    plug-in is not at fault then.
    """
    if isinstance(error, KeyboardInterrupt) or plugin_place(error) is None:
        return False
    handlers = {getattr(signal.getsignal(one), "__code__", None) for one in signal.valid_signals()}
    return all(frame.f_code not in handlers for frame, _ in walk_tb(error.__traceback__))


def _suspicions(error: BaseException) -> list[str]:
    return [note for note in getattr(error, "__notes__", ()) if note.startswith(SUSPECTED)]


def _told(error: BaseException, place: PluginPlace | None) -> str:
    """Return the type and the text of an error; a SyntaxError leaves the file and the line to its `place`."""
    if isinstance(error, SyntaxError) and place is not None and place.function is None:
        return f"{type(error).__name__}: {error.msg}"
    return f"{type(error).__name__}: {error}"


def _unread_line(error: SyntaxError, packages: Mapping[str, EntryPoint]) -> PluginPlace | None:
    """Return the line of a plug-in that Python could not read; None where it is no plug-in's."""
    if error.filename is None or error.lineno is None:
        return None
    file = Path(error.filename)
    for package, entry in packages.items():
        folders, alone = code_of(package)
        root = next((one.parent for one in (*folders, *alone) if file == one or one in file.parents), None)
        if root is not None:
            inside = file.relative_to(root).as_posix()
            return PluginPlace(distribution_name(entry), inside, error.lineno, None)
    return None


def _from_package(module: str, file: str) -> str:
    """Return the path of a module's file, from its top package on."""
    path = Path(file)
    parts = module.count(".") + (2 if path.stem == "__init__" else 1)
    return Path(*path.parts[-parts:]).as_posix()
