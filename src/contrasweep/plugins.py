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

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from typing import Generic, Protocol, TypeVar

from contrasweep.plugin_packages import distribution_name, group_of
from contrasweep.plugin_places import with_plugin_place

log = logging.getLogger(__name__)


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
        for entry in sorted(entry_points(group=group_of(self.kind)), key=distribution_name):
            if entry.name in owners:
                found[entry.name] = self._broken(entry, f"the name is taken by {owners[entry.name]}")
                continue
            owners[entry.name] = distribution_name(entry)
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
        distribution = distribution_name(entry)
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


def defined_beside(module: str, kind: type[U]) -> list[U]:
    """Return the objects of a type that the modules of the package of `module` define, in order of names."""
    package = import_module(module.rpartition(".")[0])
    modules = (import_module(f"{package.__name__}.{info.name}") for info in iter_modules(package.__path__))
    found = {item.name: item for one in modules for item in vars(one).values() if isinstance(item, kind)}
    return [found[name] for name in sorted(found)]
