"""`Loss`, the module that every objective is, and `LossTerms`, its value for each anchor."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, dataclass_transform

import torch
from torch import Tensor, nn

from contrasweep.losses.validation import argument_rules, checked, settled, takes_tensors


class LossTerms(NamedTuple):
    """The terms of a loss before they are averaged.

    Shapes: `values` (N,) floating point; `valid` (N,) bool. An anchor is invalid if its formula is
    undefined (for example, it has no positive); its value is then arbitrary and affects neither the mean nor
    the gradient.
    """

    values: Tensor
    valid: Tensor

    @classmethod
    def all_valid(cls, values: Tensor) -> "LossTerms":
        """Terms that all count."""
        return cls(values, torch.ones_like(values, dtype=torch.bool))

    def mean(self) -> Tensor:
        """Mean over the valid anchors, a scalar; NaN and Inf of valid anchors pass through.

        Without a valid anchor the mean is a zero that is part of the graph and has a zero gradient.
        """
        return self.sum() / self.valid.sum().clamp_min(1)

    def sum(self) -> Tensor:
        """Sum over the valid anchors, a scalar; it treats invalid ones as `mean` does."""
        return self.values.masked_fill(~self.valid, 0).sum()

    def dropped_fraction(self) -> Tensor:
        """Share of the anchors that are invalid, a scalar in [0, 1] without gradient."""
        dropped = ~self.valid
        return dropped.sum(dtype=torch.float32) / max(dropped.numel(), 1)


@dataclass_transform(eq_default=False)
class Loss(nn.Module):
    """An objective: `terms` gives one value for each anchor; a call, with the same arguments, their mean.

    A subclass declares its hyperparameters as the fields of a dataclass, whose annotations state their bounds
    (see `losses.validation`). Its constructor raises ValueError for a value out of bounds.
    """

    terms: Callable[..., LossTerms]

    sums_terms: ClassVar[bool] = False
    """Whether a call returns the sum of the terms, not their mean."""

    _rules: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        dataclass(eq=False, repr=False)(cls)
        rules, names = argument_rules(cls.__init__), cls.__dataclass_fields__  # type: ignore[attr-defined]
        cls._rules = {name: rules[name] for name in names if name in rules}
        cls.__init__ = checked(cls.__init__)  # type: ignore[method-assign]
        if "terms" in vars(cls):
            cls.terms = takes_tensors(cls.terms)

    def __post_init__(self) -> None:
        super().__init__()

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; a hyperparameter keeps to its bounds, and has no gradient (ValueError)."""
        rule = self._rules.get(name)
        super().__setattr__(name, value if rule is None else settled(name, value, rule))

    def extra_repr(self) -> str:
        """Return the hyperparameters."""
        values = {name: getattr(self, name, None) for name in type(self).__dataclass_fields__}  # type: ignore[attr-defined]
        own = {name: value for name, value in values.items() if isinstance(value, bool | int | float | str)}
        return ", ".join(f"{name}={value!r}" for name, value in own.items())

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return the mean (or the sum) of the terms, a scalar; arguments as for `terms`."""
        terms = self.terms(*args, **kwargs)
        return terms.sum() if self.sums_terms else terms.mean()


class TermsOf(nn.Module):
    """A loss as a module whose call returns its terms; its parameters belong to whatever holds the module."""

    def __init__(self, loss: Loss) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, *args: Any, **kwargs: Any) -> LossTerms:
        """Return the loss's terms; arguments as for the loss."""
        return self.loss.terms(*args, **kwargs)
