"""Every method by its name: those of this package and those of plug-ins."""

from collections.abc import Mapping

from contrasweep.tuning.methods.loss_method import loss_method
from contrasweep.tuning.methods.method import Hyperparameter, Method, method_registry

__all__ = ["METHODS", "Hyperparameter", "Method", "loss_method"]

METHODS: Mapping[str, Method] = method_registry()
