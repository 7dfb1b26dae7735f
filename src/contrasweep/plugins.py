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

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from typing import Generic, Protocol, TypeVar

KINDS = ("method", "encoder", "dataset", "sampler", "metric")


class PluginError(ValueError):
    """A distribution has an unusable entry point; the message names it, the distribution and the reason."""


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

    Args:
        kind: one of `KINDS`; the group of the entry points is `contrasweep.KINDs`.
        own: returns our own objects, in the order in which users see them.
        types: the types that an entry point may lead to.
        accept: returns the object to register, or raises ValueError with the reason to refuse it.

    Raises:
        PluginError: on first use, an object of a distribution is broken, or its name is taken.
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

    def __getitem__(self, name: str) -> T:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def of_type(self, kind: type[U]) -> "Selected[U]":
        """Return the registered objects of one type."""
        return Selected(self, kind)

    @cached_property
    def _items(self) -> Mapping[str, T]:
        found = {item.name: item for item in self._own()}
        owners = dict.fromkeys(found, "contrasweep itself")
        for entry in sorted(entry_points(group=_group(self.kind)), key=_distribution):
            if entry.name in owners:
                raise self._broken(entry, f"the name is taken by {owners[entry.name]}")
            found[entry.name] = self._load(entry)
            owners[entry.name] = _distribution(entry)
        return found

    def _load(self, entry: EntryPoint) -> T:
        try:
            item = entry.load()
        except Exception as error:
            raise self._broken(entry, f"{entry.value} fails with {type(error).__name__}: {error}") from error
        if not isinstance(item, self._types):
            allowed = " or ".join(f"{one.__name__}" for one in self._types)
            raise self._broken(entry, f"{entry.value} must be {allowed}; it is {type(item).__name__}")
        if item.name != entry.name:
            raise self._broken(
                entry, f"its {type(item).__name__} is called {item.name!r}: both names must be the same"
            )
        try:
            return self._accept(item)
        except ValueError as error:
            raise self._broken(entry, str(error)) from None

    def _broken(self, entry: EntryPoint, reason: str) -> PluginError:
        distribution = _distribution(entry)
        return PluginError(
            f"{self.kind} {entry.name!r} of the distribution {distribution} cannot be used: {reason}. "
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


def plugin_versions() -> dict[str, str]:
    """Return the version of every distribution that adds something of one of the `KINDS`."""
    entries = [entry for kind in KINDS for entry in entry_points(group=_group(kind))]
    return {entry.dist.name: entry.dist.version for entry in entries if entry.dist is not None}


def plugin_names(kind: str) -> list[str]:
    """Return the names of one kind that other distributions add, without importing them."""
    return sorted({entry.name for entry in entry_points(group=_group(kind))})


def _group(kind: str) -> str:
    return f"contrasweep.{kind}s"


def _distribution(entry: EntryPoint) -> str:
    return entry.value if entry.dist is None else entry.dist.name
