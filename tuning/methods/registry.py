"""The methods by name: every module of this package that defines `METHOD`, and those of plug-ins."""

from contrasweep.plugins import Registry, defined_beside
from contrasweep.tuning.methods.method import Method


def own_methods() -> list[Method]:
    """Return the methods that come with contrasweep, in alphabetical order."""
    return defined_beside(__name__, "METHOD")


def method_registry() -> Registry[Method]:
    """Return a registry of our own methods and those of plug-ins."""
    return Registry("method", own_methods, (Method,), _with_space)


def _with_space(method: Method) -> Method:
    """Return the method of a plug-in.

    Raises:
        ValueError: it has no search space, or one with other hyperparameters than its own.
    """
    if method.space is None:
        raise ValueError("its Method has no search space: space=load_space(FILE) gives it one")
    method.check_space(method.space)
    return method
