"""The methods by name: those of this package, and those that other installed distributions bring.

A module of this package is a method's where it defines `METHOD`. A distribution brings one by an entry point
of the group `contrasweep.methods` that has the method's name and leads to a `Method`:

    [project.entry-points."contrasweep.methods"]
    my-method = "my_package:METHOD"
"""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.methods.method import Method

GROUP = "contrasweep.methods"


class Registry(Mapping[str, Method]):
    """Every method by its name, in alphabetical order.

    They are looked for on first use, not on import: a plug-in imports this package to define its method, and
    then is itself not complete yet.

    Raises:
        InputError: on first use, a distribution brings a method that is broken, or of a name that is taken.
    """

    def __getitem__(self, name: str) -> Method:
        return self._methods[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._methods)

    def __len__(self) -> int:
        return len(self._methods)

    @cached_property
    def _methods(self) -> Mapping[str, Method]:
        own = own_methods()
        return dict(sorted({**own, **plugin_methods(own)}.items()))


def own_methods() -> dict[str, Method]:
    """Return the methods that come with contrasweep."""
    package = importlib.import_module(__name__.rpartition(".")[0])
    names = [f"{package.__name__}.{info.name}" for info in pkgutil.iter_modules(package.__path__)]
    modules = [importlib.import_module(name) for name in names]
    return {module.METHOD.name: module.METHOD for module in modules if hasattr(module, "METHOD")}


def plugin_methods(own: Mapping[str, Method]) -> dict[str, Method]:
    """Return the methods that other distributions bring.

    Raises:
        InputError: a method is broken, or has the name of an `own` one or of another plug-in's; the message
            names the distribution.
    """
    found: dict[str, Method] = {}
    bringers = dict.fromkeys(own, "contrasweep itself")
    for entry in sorted(entry_points(group=GROUP), key=_distribution):
        if entry.name in bringers:
            raise _broken(entry, f"the name is taken by {bringers[entry.name]}")
        found[entry.name] = _load(entry)
        bringers[entry.name] = _distribution(entry)
    return found


def plugin_versions() -> dict[str, str]:
    """Return the version of every distribution that brings methods."""
    brought = [entry.dist for entry in entry_points(group=GROUP)]
    return {dist.name: dist.version for dist in brought if dist is not None}


def _load(entry: EntryPoint) -> Method:
    try:
        method = entry.load()
    except Exception as error:
        raise _broken(entry, f"{entry.value} fails with {type(error).__name__}: {error}") from error
    if not isinstance(method, Method):
        raise _broken(entry, f"{entry.value} must be a Method, is a {type(method).__name__}")
    if method.name != entry.name:
        raise _broken(entry, f"its Method is called {method.name!r}: both names must be the same")
    if method.space is None:
        raise _broken(entry, "its Method has no search space: space=load_space(FILE) gives it one")
    searched = {name for name in method.space.names if "." not in name}
    if searched != set(method.hyperparameters):
        raise _broken(
            entry,
            f"{method.space.origin} has {_listed(searched)}, its hyperparameters are "
            f"{_listed(method.hyperparameters)}: both must be the same",
        )
    return method


def _broken(entry: EntryPoint, reason: str) -> InputError:
    bringer = _distribution(entry)
    return InputError(
        f"method {entry.name!r} of the distribution {bringer} cannot be used: {reason}. "
        f"Mend it, or `pip uninstall {bringer}`."
    )


def _distribution(entry: EntryPoint) -> str:
    return entry.value if entry.dist is None else entry.dist.name


def _listed(names: set[str] | Mapping[str, object]) -> str:
    return ", ".join(sorted(names)) or "none"
