"""The registry of methods: every module of this package that defines `METHOD`."""

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from tuning.methods.method import Hyperparameter, Method

__all__ = ["METHODS", "Hyperparameter", "Method"]


def _registered() -> Mapping[str, Method]:
    modules = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    methods = sorted((m.METHOD for m in modules if hasattr(m, "METHOD")), key=lambda method: method.name)
    return MappingProxyType({method.name: method for method in methods})


METHODS: Mapping[str, Method] = _registered()
