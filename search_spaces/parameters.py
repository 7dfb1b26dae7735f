"""One entry of a search space: a choice, a range, or a fixed value, each with its default and condition."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator, model_validator

from contrasweep.names import did_you_mean
from contrasweep.search_spaces.scale import Scale

Scalar = bool | int | float | str
TypeName = Literal["float", "int", "string", "bool"]
RangeForm = Literal["uniform", "log", "int", "log_int"]
FORMS: tuple[str, ...] = ("choice", *get_args(RangeForm), "fixed")
OPTIONS = ("default", "of", "when", "given", "source")

MOST_CHOICES = 1_000
"""The largest number of values of a choice, and of parameters of a space."""

WHOLE_NUMBERS = range(-(2**63), 2**63)
"""The whole numbers that are read and stored: those of 64 bits, as a column of the store holds them."""

_EXACT = 2**53
"""Up to here, a float holds every whole number: ranges are scaled as floats."""

_NAME = re.compile(r"[A-Za-z]\w*(\.[A-Za-z]\w*)*")


class SpaceError(ValueError):
    """A search space is wrong: the message names file, parameter, what was given and what is allowed."""


IN_WORDS: Mapping[TypeName, str] = {
    "float": "a number",
    "int": "a whole number",
    "string": "text",
    "bool": "true or false",
}
"""What a value of a type is, for messages."""


def type_name(value: Scalar) -> TypeName:
    """Return the column type of `value` in the results store."""
    names: dict[type, TypeName] = {bool: "bool", int: "int", float: "float", str: "string"}
    return names[type(value)]


def among(value: Scalar | None, allowed: Iterable[Scalar]) -> bool:
    """Whether `value` is one of `allowed`; True does not equal 1 here, but 1 equals 1.0."""
    return any(value == item and isinstance(value, bool) == isinstance(item, bool) for item in allowed)


class _Entry(BaseModel):
    """The fields of every parameter.

    Attributes:
        name: a setting or a hyperparameter.
        default: its value where nothing else is given.
        when: the parent values under which it is active.
        given: further parent values, under which it is left out by default but may be set.
        source: where its values come from.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    default: Scalar
    when: Mapping[str, tuple[Scalar, ...]] = {}
    given: Mapping[str, tuple[Scalar, ...]] = {}
    source: str = ""

    @field_validator("name")
    @classmethod
    def _usable(cls, name: str) -> str:
        if name.rpartition(".")[2] == "lambda":
            raise SpaceError("'lambda' cannot be a name (it is a Python keyword). Did you mean 'lam'?")
        if not _NAME.fullmatch(name):
            raise SpaceError(f"given the name {name!r}; allowed: words of letters, digits, _, joined by dots")
        return name

    @field_validator("when")
    @classmethod
    def _says_something(cls, when: Mapping[str, tuple[Scalar, ...]]) -> Mapping[str, tuple[Scalar, ...]]:
        for parent, values in when.items():
            if not values:
                raise SpaceError(f"when: {parent}: given no value; allowed: at least one")
        return when

    @model_validator(mode="after")
    def _given_of_parents(self) -> Self:
        for parent in self.given:
            if parent not in self.when:
                raise SpaceError(f"given: {parent}: no condition names it; allowed: {list(self.when)}")
        return self

    @property
    def when_given(self) -> Mapping[str, tuple[Scalar, ...]]:
        """The parent values under which the parameter is active if a user sets it."""
        return {parent: (*values, *self.given.get(parent, ())) for parent, values in self.when.items()}

    @property
    def type(self) -> TypeName:
        """The column type of its values."""
        return type_name(self.default)

    def values(self) -> Sequence[Scalar]:
        """Return the values it takes, if it is not a continuous range."""
        return (self.default,)

    def size(self) -> int | None:
        """Return the number of its values, or None for a continuous range."""
        return len(self.values())

    def contains(self, value: Scalar) -> bool:
        """Whether it takes `value`; a continuous range takes whole numbers too."""
        return among(value, self.values())

    def _conditions(self) -> dict[str, Any]:
        content: dict[str, Any] = {}
        for key, by_parent in (("when", self.when), ("given", self.given)):
            if by_parent:
                content[key] = {parent: list(values) for parent, values in by_parent.items()}
        if self.source:
            content["source"] = self.source
        return content


class Fixed(_Entry):
    """A parameter that is set, not searched.

    Attributes:
        of: the values that a user may set instead; conditions may name any of them.
    """

    of: tuple[Scalar, ...] = ()

    @field_validator("default")
    @classmethod
    def _finite(cls, value: Scalar) -> Scalar:
        if isinstance(value, float) and not math.isfinite(value):
            raise SpaceError(f"given {value}; allowed: a finite number")
        return value

    @model_validator(mode="after")
    def _one_of_them(self) -> "Fixed":
        if self.of and not among(self.default, self.of):
            hint = did_you_mean(str(self.default), map(str, self.of))
            raise SpaceError(f"fixed: given {self.default!r}; allowed: one of {list(self.of)}.{hint}")
        if len({type_name(value) for value in self.of}) > 1 or len(set(self.of)) < len(self.of):
            raise SpaceError(f"of: given {list(self.of)}; allowed: values of one type, each once")
        return self

    def to_form(self) -> Any:
        """Return its form in a space file: the bare value if it has neither condition nor source."""
        rest = {**({"of": list(self.of)} if self.of else {}), **self._conditions()}
        return {"fixed": self.default, **rest} if rest else self.default

    def describe(self) -> str:
        """Return its values in words."""
        return f"fixed at {self.default!r}" + (f" of {list(self.of)}" if self.of else "")


class Choice(_Entry):
    """One of a few values of one type, without an order."""

    choices: tuple[Scalar, ...]

    @model_validator(mode="after")
    def _consistent(self) -> "Choice":
        if not 1 <= len(self.choices) <= MOST_CHOICES:
            raise SpaceError(f"choice: given {len(self.choices):,} values; allowed: 1 to {MOST_CHOICES:,}")
        kinds = sorted({type_name(value) for value in self.choices})
        if len(kinds) > 1:
            given = f"{list(self.choices)} of types {', '.join(kinds)}"
            raise SpaceError(f"choice: given {given}; allowed: values of one type")
        if len(set(self.choices)) < len(self.choices):
            raise SpaceError(f"choice: given {list(self.choices)}; allowed: each value once")
        if any(isinstance(value, float) and not math.isfinite(value) for value in self.choices):
            raise SpaceError(f"choice: given {list(self.choices)}; allowed: finite numbers")
        if type_name(self.default) != kinds[0] or self.default not in self.choices:
            hint = did_you_mean(str(self.default), [str(value) for value in self.choices])
            raise SpaceError(f"default: given {self.default!r}; allowed: one of {list(self.choices)}.{hint}")
        return self

    def values(self) -> Sequence[Scalar]:
        """Return the values it takes."""
        return self.choices

    def to_form(self) -> Any:
        """Return its form in a space file."""
        return {"choice": list(self.choices), "default": self.default, **self._conditions()}

    def describe(self) -> str:
        """Return its values in words."""
        return f"choice {list(self.choices)}, default {self.default!r}"


class Range(_Entry):
    """A number between `low` and `high`, both included; `log` and `log_int` are uniform in the logarithm."""

    form: RangeForm
    low: float | int
    high: float | int
    default: float | int

    @model_validator(mode="after")
    def _consistent(self) -> "Range":
        given = f"{self.form}: given [{self.low}, {self.high}]"
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            raise SpaceError(f"{given}; allowed: finite numbers")
        if not self.low < self.high:
            raise SpaceError(f"{given}; allowed: [low, high] with low < high")
        if max(abs(self.low), abs(self.high)) > _EXACT and self.is_integer:
            raise SpaceError(f"{given}; allowed: whole numbers from -2^53 to 2^53")
        if self.is_log and self.low <= 0:
            raise SpaceError(f"{given}; allowed: a log range above 0")
        if self.is_integer and not (isinstance(self.low, int) and isinstance(self.high, int)):
            raise SpaceError(f"{given}; allowed: whole numbers")
        if self.is_integer and not isinstance(self.default, int):
            raise SpaceError(f"default: given {self.default}; allowed: whole numbers")
        if not self.low <= self.default <= self.high:
            raise SpaceError(f"default: given {self.default}; allowed: from {self.low} to {self.high}")
        return self

    @property
    def is_log(self) -> bool:
        """Whether the search is uniform in the logarithm."""
        return self.form in ("log", "log_int")

    @property
    def is_integer(self) -> bool:
        """Whether its values are whole numbers."""
        return self.form in ("int", "log_int")

    @property
    def scale(self) -> Scale:
        """The unit scale of the range, on which a random search draws uniformly."""
        return Scale(self.low, self.high, self.is_log, self.is_integer)

    @property
    def type(self) -> TypeName:
        """The column type of its values."""
        return "int" if self.is_integer else "float"

    def values(self) -> Sequence[Scalar]:
        """Return the whole numbers it takes (an integer range only)."""
        return range(int(self.low), int(self.high) + 1)

    def size(self) -> int | None:
        """Return the number of its values, or None for a continuous range."""
        return int(self.high) - int(self.low) + 1 if self.is_integer else None

    def levels(self, count: int) -> Choice:
        """Return the choice of at most `count` values, evenly spaced on its scale, both ends and the default.

        The default replaces the nearest value between the ends, or the nearest end if there is no value
        between them. Values between the ends have six digits.
        """
        # Levels include both ends; the cells of whole numbers in `self.scale` would leave the ends out.
        scale = Scale(self.low, self.high, self.is_log)
        inner = [scale.value(i / (count - 1)) for i in range(1, count - 1)]
        rounded = [round(value) if self.is_integer else float(f"{value:.6g}") for value in inner]
        kind = int if self.is_integer else float
        values = sorted({kind(value) for value in (self.low, *rounded, self.high)})
        default = kind(self.default)
        if default not in values:
            near = min(values[1:-1] or values, key=lambda value: abs(scale.unit(value) - scale.unit(default)))
            values[values.index(near)] = default
        same = {"name": self.name, "when": self.when, "given": self.given, "source": self.source}
        return Choice.model_validate({**same, "choices": tuple(values), "default": default})

    def contains(self, value: Scalar) -> bool:
        """Whether it takes `value`; a continuous range takes whole numbers too."""
        allowed: tuple[type, ...] = (int,) if self.is_integer else (int, float)
        return type(value) in allowed and self.low <= float(value) <= self.high

    def to_form(self) -> Any:
        """Return its form in a space file."""
        return {self.form: [self.low, self.high], "default": self.default, **self._conditions()}

    def describe(self) -> str:
        """Return its values in words."""
        return f"{self.form} [{self.low}, {self.high}], default {self.default}"


Parameter = Choice | Range | Fixed


def parse_parameter(name: str, form: object) -> Parameter:
    """Return the parameter that `form` describes: a bare value, or a mapping with one of `FORMS`.

    Raises:
        SpaceError: the form is wrong; the message leaves out the file, which the caller knows.
    """
    try:
        if isinstance(form, list | tuple):
            raise SpaceError(f"given {form!r}; allowed: {{log: [..]}}, {{uniform: [..]}} or {{choice: [..]}}")
        if not isinstance(form, Mapping):
            return Fixed(name=name, default=_scalar(form))
        kind = _kind_of(form)
        if kind == "fixed":
            return Fixed(
                name=name, default=_scalar(form["fixed"]), of=_values("of", form), **_conditions(form)
            )
        return _parse_choice(name, form) if kind == "choice" else _parse_range(name, kind, form)
    except ValidationError as error:
        raise SpaceError(f"{name}: {_reason(error)}") from None
    except (ValueError, OverflowError) as error:
        raise SpaceError(f"{name}: {error}") from None


def _reason(error: ValidationError) -> str:
    first = error.errors()[0]
    reason = first["msg"].removeprefix("Value error, ")
    return reason if first["type"] == "value_error" else f"{'.'.join(map(str, first['loc']))}: {reason}"


def _kind_of(form: Mapping[Any, Any]) -> str:
    known = (*FORMS, *OPTIONS)
    for key in form:
        if key not in known:
            raise SpaceError(
                f"unknown key {key!r}.{did_you_mean(str(key), known)} Known: {', '.join(known)}."
            )
    kinds = [key for key in form if key in FORMS]
    if len(kinds) != 1:
        given = " and ".join(kinds) or "none"
        raise SpaceError(f"given {given} of the forms {', '.join(FORMS)}; allowed: exactly one")
    if kinds == ["fixed"] and "default" in form:
        raise SpaceError("default: given beside fixed; allowed: fixed alone")
    if kinds != ["fixed"] and "of" in form:
        raise SpaceError(f"of: given beside {kinds[0]}; allowed: beside fixed")
    if kinds != ["fixed"] and "default" not in form:
        raise SpaceError("default: missing; every searched parameter needs one (the first trial runs it)")
    if not isinstance(form.get("source", ""), str):
        raise SpaceError(f"source: given {form['source']!r}; allowed: text")
    return str(kinds[0])


def _values(key: str, form: Mapping[Any, Any]) -> tuple[Scalar, ...]:
    given = form.get(key, ())
    if not isinstance(given, list | tuple):
        raise SpaceError(f"{key}: given {given!r}; allowed: a list of values")
    return tuple(_scalar(value) for value in given)


def _parse_choice(name: str, form: Mapping[Any, Any]) -> Choice:
    choices, default = _values("choice", form), _scalar(form["default"])
    if {type(value) for value in choices} == {int, float}:
        choices = tuple(float(value) for value in choices)
    if type(default) is int and choices and type(choices[0]) is float:
        default = float(default)
    return Choice(name=name, choices=choices, default=default, **_conditions(form))


def _parse_range(name: str, kind: str, form: Mapping[Any, Any]) -> Range:
    bounds = form[kind]
    if not isinstance(bounds, list | tuple) or len(bounds) != 2:
        raise SpaceError(f"{kind}: given {bounds!r}; allowed: two numbers, [low, high]")
    whole = kind in ("int", "log_int")
    low, high = (_number(kind, value, whole) for value in bounds)
    default = _number("default", form["default"], whole)
    fields = {"name": name, "form": kind, "low": low, "high": high, "default": default}
    return Range.model_validate({**fields, **_conditions(form)})


def _conditions(form: Mapping[Any, Any]) -> dict[str, Any]:
    by_parent = {key: _by_parent(key, form) for key in ("when", "given")}
    return {**by_parent, "source": form.get("source", "")}


def _by_parent(key: str, form: Mapping[Any, Any]) -> dict[str, tuple[Scalar, ...]]:
    found = form.get(key) or {}
    if not isinstance(found, Mapping):
        raise SpaceError(f"{key}: given {found!r}; allowed: a mapping of parent to its values")
    lists = {str(p): values if isinstance(values, list | tuple) else [values] for p, values in found.items()}
    return {parent: tuple(_scalar(value) for value in values) for parent, values in lists.items()}


def _scalar(value: object) -> Scalar:
    if not isinstance(value, bool | int | float | str):
        raise SpaceError(f"given {value!r}; allowed: true or false, a number, text")
    if isinstance(value, int) and value not in WHOLE_NUMBERS:
        raise SpaceError("given a whole number of more than 64 bits; allowed: 64 bits")
    return value


def _number(key: str, value: object, whole: bool) -> float | int:
    """Return `value` as a number; a quoted number counts, since YAML 1.1 reads a bare `1e-3` as text."""
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise SpaceError(value)
        number = float(_scalar(value))
    except ValueError:
        raise SpaceError(f"{key}: given {value!r}; allowed: a number") from None
    return int(number) if whole and number.is_integer() else number
