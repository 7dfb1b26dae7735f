"""Checks of arguments and inputs; each raises ValueError and names the given and the allowed values.

A loss states the bounds of its hyperparameters once: in the annotations of its fields (a `Loss`) or of its
`@checked` constructor. Methods and search spaces read them from there with `rule_of`.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from types import NoneType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

import torch
from torch import Tensor, nn

from contrasweep.losses.synchronisation import reading_synchronises
from contrasweep.names import did_you_mean
from contrasweep.rules import Number, OneOf, Rule

P = ParamSpec("P")
T = TypeVar("T")

POSITIVE = Number(above=0)
NON_NEGATIVE = Number(at_least=0)

Positive = Annotated[float, POSITIVE]
NonNegative = Annotated[float, NON_NEGATIVE]
Fraction = Annotated[float, Number(at_least=0, below=1)]
Count = Annotated[int, Number(at_least=1, whole=True)]

_TENSORS: dict[object, tuple[type, ...]] = {Tensor: (Tensor,), Tensor | None: (Tensor, NoneType)}


class _Truth:
    """True or False: a word such as "False" would count as True."""

    def check(self, name: str, value: object) -> None:
        """Raise ValueError unless `value` is one of them."""
        # NumPy has a type of its own for them.
        if type(value).__name__ not in ("bool", "bool_"):
            raise ValueError(f"{name} must be True or False, given {value!r}")


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Check the arguments of a constructor or function against its annotations, before its body runs.

    A number arrives in the body as Python's float or int, whatever the library that it comes from. An
    argument without a rule is not checked.

    Raises:
        ValueError: on the call, if the rule of an argument does not allow its value.
    """
    signature, rules = inspect.signature(function), argument_rules(function)

    @wraps(function)
    def checks(*args: P.args, **kwargs: P.kwargs) -> T:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        for name, rule in rules.items():
            bound.arguments[name] = settled(name, bound.arguments[name], rule)
        return function(*bound.args, **bound.kwargs)

    return checks


def takes_tensors(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function refuse what is no tensor where its annotations say `Tensor` or `Tensor | None`.

    Raises:
        ValueError: on the call; the message names the argument.
    """
    names = tuple(inspect.signature(function).parameters)
    allowed = {name: kinds for name, hint in _known_hints(function).items() if (kinds := _TENSORS.get(hint))}

    @wraps(function)
    def takes(*args: P.args, **kwargs: P.kwargs) -> T:
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            if name in allowed and not isinstance(value, allowed[name]):
                several = isinstance(value, list | tuple) and any(isinstance(one, Tensor) for one in value)
                stack = ", such as torch.stack([first, second])" if several else ""
                raise ValueError(f"{name} must be a tensor{stack}, got {type(value).__name__}")
        return function(*args, **kwargs)

    return takes


def _known_hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return {name: hint for name, hint in get_type_hints(function).items() if name != "return"}
    except NameError:  # a name that only type checkers import: nothing is known of these arguments
        return {}


def settled(name: str, value: Any, rule: Rule | _Truth) -> Any:
    """Return a value that a rule allows as Python's own float, int, bool or word.

    Raises:
        ValueError: the rule does not allow it; the message calls it `name`.
    """
    rule.check(name, value)
    if isinstance(rule, Number):
        return int(value) if rule.whole else float(value)
    return bool(value) if isinstance(rule, _Truth) else value


def argument_rules(function: Callable[..., Any]) -> dict[str, Rule | _Truth]:
    """Return the rules in the annotations of a function's arguments, by name; a `bool` is True or False."""
    hints = get_type_hints(function, include_extras=True)
    found = {name: _Truth() if hint is bool else _annotated_rule(hint) for name, hint in hints.items()}
    return {name: rule for name, rule in found.items() if rule is not None and name != "return"}


def rule_of(loss: type[nn.Module], argument: str) -> Rule:
    """Return the allowed values of an argument of a loss's constructor, read from its annotation.

    A plain `float` allows any finite number, an `int` any whole number, a `Literal` its words.

    Raises:
        ValueError: the constructor has no such argument (the message suggests the nearest name), or the
            annotation has another form.
    """
    hints = get_type_hints(loss.__init__, include_extras=True)
    arguments = list(inspect.signature(loss).parameters)
    if argument not in arguments:
        hint = did_you_mean(argument, arguments)
        known = ", ".join(arguments) or "none"
        raise ValueError(f"{loss.__name__} has no argument {argument!r}.{hint} Known: {known}.")
    annotation = hints.get(argument)
    rule = _annotated_rule(annotation)
    if rule is not None:
        return rule
    if annotation in (float, int):
        return Number(whole=annotation is int)
    if get_origin(annotation) is Literal:
        return OneOf(tuple(map(str, get_args(annotation))))
    given = "has no annotation" if annotation is None else f"is annotated {annotation!r}"
    raise ValueError(
        f"argument {argument!r} of {loss.__name__} {given}; "
        "allowed: float, int, Literal[...], or Annotated[...] with a Number or OneOf"
    )


def _annotated_rule(annotation: object) -> Rule | None:
    if get_origin(annotation) is not Annotated:
        return None
    return next((extra for extra in get_args(annotation)[1:] if isinstance(extra, Number | OneOf)), None)


def require_views(
    views: Tensor, *, at_least: int = 1, exactly: int | None = None, images: int = 1, **per_image: Tensor
) -> None:
    """Check that views are floating point (V, B, D), with enough views and images.

    Each of `per_image` must be (B,).
    """
    if views.dim() != 3 or not views.is_floating_point() or views.shape[1] == 0 or views.shape[2] == 0:
        raise ValueError(
            "views must be a floating point tensor of shape (V views, B images, D features), none of them 0, "
            f"got {views.dtype} of shape {tuple(views.shape)}"
        )
    if exactly is not None and views.shape[0] != exactly:
        given = f"{views.shape[0]} (shape {tuple(views.shape)})"
        raise ValueError(f"this loss takes exactly {exactly} views, got {given}")
    if views.shape[0] < at_least:
        raise ValueError(f"this loss needs at least {at_least} views, got shape {tuple(views.shape)}")
    if views.shape[1] < images:
        raise ValueError(f"this loss needs at least {images} images, got shape {tuple(views.shape)}")
    for name, values in per_image.items():
        require_per_image(name, values, views.shape[1])


def require_per_image(name: str, values: Tensor, images: int) -> None:
    """Check that `values` holds one value per image, in the shape (B,)."""
    if values.shape != (images,):
        given = tuple(values.shape)
        raise ValueError(f"{name} must have shape ({images},), one value per image, got {given}")


def require_classes(name: str, values: Tensor, images: int, classes: int) -> Tensor:
    """Return `values` as int64; they must hold a class number in 0..classes-1 per image.

    The numbers are checked only on a CPU. torch indexes with no other type of integers everywhere.
    """
    require_per_image(name, values, images)
    if values.is_floating_point():
        raise ValueError(f"{name} must be integers, got {values.dtype}")
    found = extremes(values)
    if found is not None and (found[0] < 0 or found[1] >= classes):
        raise ValueError(f"{name} must lie in 0..{classes - 1}, got {found[0]}..{found[1]}")
    return values.long()


def require_positive(name: str, values: Tensor, *, or_zero: bool = False) -> None:
    """Check, on a CPU, that all values are above 0, or at least 0; NaN passes, so that it comes out."""
    found = extremes(values)
    if found is not None and (found[0] < 0 or (found[0] == 0 and not or_zero)):
        bound = "at least 0" if or_zero else "above 0"
        raise ValueError(f"{name} must be {bound}, got {found[0]:g}")


def extremes(values: Tensor) -> tuple[float, float] | None:
    """Return the smallest and the largest value; None of no values, and where reading them waits."""
    if reading_synchronises(values) or not values.numel():
        return None
    low, high = torch.aminmax(values)
    return low.item(), high.item()


def require_queue(queries: Tensor, keys: Tensor, queue: Tensor, *, several_keys: bool = False) -> None:
    """Check that queries and keys are (B, D) and the queue (Q, D), none of them 0.

    With `several_keys`, keys may be (B, K, D).
    """
    of_query = keys.shape == queries.shape
    of_several = several_keys and keys.dim() == 3 and (len(keys), keys.shape[2]) == tuple(queries.shape)
    if (
        queries.dim() != 2
        or not (of_query or of_several)
        or queue.dim() != 2
        or queue.shape[1] != queries.shape[1]
        or 0 in (*queries.shape, *keys.shape, *queue.shape)
    ):
        shapes = ", ".join(str(tuple(x.shape)) for x in (queries, keys, queue))
        allowed = "keys (B, D) or (B, K, D)" if several_keys else "keys (B, D)"
        raise ValueError(f"queries must be (B, D), {allowed} and queue (Q, D), none of them 0, got {shapes}")
    if len({queries.dtype, keys.dtype, queue.dtype}) > 1:
        types = ", ".join(str(x.dtype) for x in (queries, keys, queue))
        raise ValueError(f"queries, keys and queue must be of one type, got {types}")
