"""Plug-ins: what other installed distributions add, found by entry points.

An entry point has the name that users type and leads to an object with the same name:

    [project.entry-points."contrasweep.methods"]
    my-method = "my_package:METHOD"

    [project.entry-points."contrasweep.encoders"]
    my-encoder = "my_package:ENCODER"

    [project.entry-points."contrasweep.datasets"]
    my-dataset = "my_package:DATASET"

    [project.entry-points."contrasweep.samplers"]
    my-sampler = "my_package:SAMPLER"

    [project.entry-points."contrasweep.metrics"]
    my_metric = "my_package:METRIC"
"""

import hashlib
import logging
import signal
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from traceback import walk_tb
from typing import Generic, Protocol, TypeVar

log = logging.getLogger(__name__)

KINDS = ("method", "encoder", "dataset", "sampler", "metric")

SUSPECTED = "the run uses "
"""How a note begins that says on an error which plug-ins may be its cause."""

_CODE = (".py", ".yaml", ".yml")
"""The files of a package that decide what it does."""


class PluginError(ValueError):
    """A distribution has an unusable entry point; the message names it, the distribution and the reason."""


class WrongReturn(TypeError):
    """The code of a plug-in returned what cannot be used; the message names it and says what to return."""


class Named(Protocol):
    """An object with a name, which is what users type."""

    @property
    def name(self) -> str:
        """The name."""


T = TypeVar("T", bound=Named)
U = TypeVar("U", bound=Named)


def _unchanged(item: T) -> T:
    return item


class Registry(Mapping[str, T], Generic[T]):
    """A mapping from name to object, for one kind: first our own objects, then those of other distributions.

    It looks for other distributions on first use, not on import: a plug-in imports our packages to define
    its objects, and it is incomplete until that import ends.

    An object that cannot be used, such as one whose module does not compile while its author edits it, is
    left out with a warning. Only the lookup of its own name fails. If two objects have one name, neither can
    be used, because nobody knows which of them is meant.

    Args:
        kind: one of `KINDS`; the group of the entry points is `contrasweep.KINDs`.
        own: returns our own objects, in the order in which users see them.
        types: the types that an entry point may lead to.
        accept: returns the object to register, or raises ValueError with the reason to refuse it.

    Raises:
        PluginError: by `registry[name]` and `name in registry`, the object of that name cannot be used.
    """

    def __init__(
        self,
        kind: str,
        own: Callable[[], Iterable[T]],
        types: tuple[type[T], ...],
        accept: Callable[[T], T] = _unchanged,
    ) -> None:
        self.kind = kind
        self._own = own
        self._types = types
        self._accept = accept
        self._warned = False

    def __getitem__(self, name: str) -> T:
        item = self._items[name]
        if isinstance(item, PluginError):
            raise PluginError(str(item)) from item.__cause__
        self._warn()
        return item

    def __iter__(self) -> Iterator[str]:
        self._warn()
        return (name for name, item in self._items.items() if not isinstance(item, PluginError))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def of_type(self, kind: type[U]) -> "Selected[U]":
        """Return the registered objects of one type."""
        return Selected(self, kind)

    @cached_property
    def _items(self) -> Mapping[str, T | PluginError]:
        """The objects by name; in the place of one that cannot be used, the reason."""
        found: dict[str, T | PluginError] = {item.name: item for item in self._own()}
        owners = dict.fromkeys(found, "contrasweep itself")
        for entry in sorted(entry_points(group=_group(self.kind)), key=_distribution):
            if entry.name in owners:
                found[entry.name] = self._broken(entry, f"the name is taken by {owners[entry.name]}")
                continue
            owners[entry.name] = _distribution(entry)
            try:
                found[entry.name] = self._load(entry)
            except PluginError as error:
                found[entry.name] = error
        return found

    def _warn(self) -> None:
        """Warn, once, of what cannot be used. A caller that asks for such a name gets the reason instead."""
        if self._warned:
            return
        self._warned = True
        for item in self._items.values():
            if isinstance(item, PluginError):
                log.warning("Left out: %s", item)

    def _load(self, entry: EntryPoint) -> T:
        if entry.pattern.match(entry.value) is None:
            raise self._broken(entry, f"its entry point is {entry.value!r}; allowed: MODULE:OBJECT")
        with self._refusing(entry, entry.value):
            item = entry.load()
        if not isinstance(item, self._types):
            allowed = " or ".join(f"{one.__name__}" for one in self._types)
            raise self._broken(entry, f"{entry.value} must be {allowed}; it is {type(item).__name__}")
        if item.name != entry.name:
            raise self._broken(
                entry, f"its {type(item).__name__} is called {item.name!r}: both names must be the same"
            )
        with self._refusing(entry, f"the check of its {type(item).__name__}", ValueError):
            return self._accept(item)

    @contextmanager
    def _refusing(
        self, entry: EntryPoint, what: str, *reasons: type[Exception]
    ) -> Generator[None, None, None]:
        """Raise PluginError for whatever is raised in the block, where the code of a plug-in runs.

        Args:
            entry: the entry point of the plug-in.
            what: what fails, if anything else than a reason is raised.
            reasons: the types of errors whose words are the reason to refuse the plug-in.
        """
        try:
            yield
        except KeyboardInterrupt:
            raise
        # Not Exception alone: a module that calls sys.exit would end every command.
        except BaseException as error:
            failed = f"{what} fails with {with_plugin_place(error)}"
            raise self._broken(entry, str(error) if isinstance(error, reasons) else failed) from error

    def _broken(self, entry: EntryPoint, reason: str) -> PluginError:
        distribution = _distribution(entry)
        return PluginError(
            f"{self.kind} {entry.name!r} of the distribution {distribution} cannot be used: "
            f"{reason.removesuffix('.')}. "
            f"Repair the package, or run `pip uninstall {distribution}`."
        )


class Selected(Mapping[str, U], Generic[U]):
    """The objects in a registry that have one type."""

    def __init__(self, registry: Mapping[str, Named], kind: type[U]) -> None:
        self._registry = registry
        self._kind = kind

    def __getitem__(self, name: str) -> U:
        item = self._registry[name]
        if not isinstance(item, self._kind):
            raise KeyError(name)
        return item

    def __iter__(self) -> Iterator[str]:
        return (name for name, item in self._registry.items() if isinstance(item, self._kind))

    def __len__(self) -> int:
        return sum(1 for _ in self)


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
    packages = {_package(entry): entry for entry in _entries()}
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, SyntaxError) and (unread := _unread_line(cause, packages)) is not None:
            return unread
        for frame, line in reversed(list(walk_tb(cause.__traceback__))):
            module, code = str(frame.f_globals.get("__name__")), frame.f_code
            entry = packages.get(module.partition(".")[0])
            if entry is not None:
                return PluginPlace(
                    _distribution(entry), _from_package(module, code.co_filename), line, code.co_name
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


def _suspicions(error: BaseException) -> list[str]:
    return [note for note in getattr(error, "__notes__", ()) if note.startswith(SUSPECTED)]


def raised_by_plugin(error: BaseException) -> bool:
    """Whether the code of a plug-in raised what is no Exception, such as SystemExit, which ends a process.

    The handler of a signal may raise it in the midst of a plug-in's code, as Ray's does to end a worker. The
    plug-in is not at fault then.
    """
    if isinstance(error, KeyboardInterrupt) or plugin_place(error) is None:
        return False
    handlers = {getattr(signal.getsignal(one), "__code__", None) for one in signal.valid_signals()}
    return all(frame.f_code not in handlers for frame, _ in walk_tb(error.__traceback__))


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
        folders, alone = _code_of(package)
        root = next((one.parent for one in (*folders, *alone) if file == one or one in file.parents), None)
        if root is not None:
            return PluginPlace(_distribution(entry), file.relative_to(root).as_posix(), error.lineno, None)
    return None


def _from_package(module: str, file: str) -> str:
    """Return the path of a module's file, from its top package on."""
    path = Path(file)
    parts = module.count(".") + (2 if path.stem == "__init__" else 1)
    return Path(*path.parts[-parts:]).as_posix()


def defined_beside(module: str, kind: type[U]) -> list[U]:
    """Return the objects of a type that the modules of the package of `module` define, in order of names."""
    package = import_module(module.rpartition(".")[0])
    modules = (import_module(f"{package.__name__}.{info.name}") for info in iter_modules(package.__path__))
    found = {item.name: item for one in modules for item in vars(one).values() if isinstance(item, kind)}
    return [found[name] for name in sorted(found)]


def installed_plugins() -> dict[str, list[EntryPoint]]:
    """Return the entry points of each distribution that adds something of the `KINDS`, by its name."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in _entries():
        if entry.dist is not None:
            found.setdefault(entry.dist.name, []).append(entry)
    return found


def plugin_versions() -> dict[str, str]:
    """Return the version of every distribution that adds something of one of the `KINDS`."""
    return {entry.dist.name: entry.dist.version for entry in _entries() if entry.dist is not None}


def things_added(entries: Iterable[EntryPoint]) -> list[str]:
    """Return what entry points add, each as its kind and its name, such as `method dcl`."""
    kinds = {_group(kind): kind for kind in KINDS}
    return [f"{kinds[one.group]} {one.name}" for one in entries]


def source_digest(entries: Iterable[EntryPoint]) -> str:
    """Return a digest of the Python and YAML files of the packages that entry points name; import none."""
    return _digest(sorted({_package(entry) for entry in entries}))


def distributions_of(names: Collection[str]) -> list[str]:
    """Return the distributions that add methods, encoders, datasets, samplers or metrics of these names."""
    return sorted({entry.dist.name for entry in _entries() if entry.dist is not None and entry.name in names})


def distribution_of(kind: str, name: str) -> str | None:
    """Return the distribution that adds the object of one kind with this name; None if it is our own."""
    found = [entry for entry in entry_points(group=_group(kind)) if entry.name == name]
    return _distribution(found[0]) if found else None


def _digest(packages: Iterable[str]) -> str:
    digest = hashlib.blake2b(digest_size=4)
    for package in packages:
        folders, alone = _code_of(package)
        files = [file for folder in folders for file in sorted(folder.rglob("*"))]
        for file in (*alone, *files):
            if file.suffix in _CODE and file.is_file():
                digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _code_of(package: str) -> tuple[list[Path], list[Path]]:
    """Return the folders of a package, or the file of a module that is alone; none if neither is there."""
    spec = find_spec(package) if package else None
    folders = [Path(one) for one in spec.submodule_search_locations or ()] if spec is not None else []
    return folders, [] if spec is None or folders or spec.origin is None else [Path(spec.origin)]


def plugin_names(kind: str) -> list[str]:
    """Return the names of one kind that other distributions add, without importing them."""
    return sorted({entry.name for entry in entry_points(group=_group(kind))})


def _entries() -> list[EntryPoint]:
    # One look for all kinds: it reads a file of every installed distribution.
    found = entry_points()
    return [entry for kind in KINDS for entry in found.select(group=_group(kind))]


def _group(kind: str) -> str:
    return f"contrasweep.{kind}s"


def _package(entry: EntryPoint) -> str:
    """Return the top package of what an entry point leads to, also where Python cannot parse the latter."""
    return entry.value.partition(":")[0].partition(".")[0].strip()


def _distribution(entry: EntryPoint) -> str:
    return entry.value if entry.dist is None else entry.dist.name
