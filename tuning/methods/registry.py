"""All methods by name: one registry of those of this package and those of plug-ins."""

from collections.abc import Mapping

from contrasweep.plugins import Registry, defined_beside
from contrasweep.tuning.methods.method import Method


def method_registry() -> Registry[Method]:
    """Return every `Method` that a module of this package defines, and those of plug-ins."""
    return Registry("method", lambda: defined_beside(__name__, Method), (Method,), _with_space)


def _with_space(method: Method) -> Method:
    """Return the method of a plug-in.

    Raises:
        ValueError: it has no search space, or one with other hyperparameters than its own.
    """
    if method.space is None:
        raise ValueError("its Method has no search space: space=load_space(FILE) gives it one")
    method.check_space(method.space)
    return method


METHODS: Mapping[str, Method] = method_registry()
"""Every method by its name."""
