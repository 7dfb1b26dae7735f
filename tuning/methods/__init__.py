"""Every method by its name: this package's and those of plug-ins, see `methods.registry`."""

from collections.abc import Mapping

from contrasweep.tuning.methods.method import Hyperparameter, Method
from contrasweep.tuning.methods.registry import Registry

__all__ = ["METHODS", "Hyperparameter", "Method"]

METHODS: Mapping[str, Method] = Registry()
