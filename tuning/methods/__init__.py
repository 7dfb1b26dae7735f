"""Every method by its name: this package's and those of plug-ins, see `tuning.methods.registry`."""

from collections.abc import Mapping

from tuning.methods.method import Hyperparameter, Method
from tuning.methods.registry import Registry

__all__ = ["METHODS", "Hyperparameter", "Method"]

METHODS: Mapping[str, Method] = Registry()
