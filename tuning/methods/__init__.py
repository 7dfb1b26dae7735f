"""Every method by its name: those of this package and those of plug-ins."""

from typing import TYPE_CHECKING

from contrasweep.lazy import exports

if TYPE_CHECKING:
    from contrasweep.tuning.methods.added_metrics import Metric
    from contrasweep.tuning.methods.declaration import Declaration, Hyperparameter
    from contrasweep.tuning.methods.from_loss import loss_method
    from contrasweep.tuning.methods.method import Method
    from contrasweep.tuning.methods.registry import METHODS

__all__ = ["METHODS", "Declaration", "Hyperparameter", "Method", "Metric", "loss_method"]

__getattr__, __dir__ = exports(__name__, __file__)
