"""`Space`: the parameters that a search varies, their ranges, and the conditions between them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel, ConfigDict

from contrasweep.names import did_you_mean
from contrasweep.search_spaces.counting import count_configurations
from contrasweep.search_spaces.parameters import (
    IN_WORDS,
    MOST_CHOICES,
    Choice,
    Fixed,
    Parameter,
    Range,
    Scalar,
    SpaceError,
    TypeName,
    among,
    parse_parameter,
    type_name,
)


class Space(BaseModel):
    """The parameters of one method's search, parents before the parameters that depend on them.

    A dotted name (`optimizer.lr`) names a field of the experiment; a bare name belongs to the method. Build a
    space with `Space.parse`, `load_space` or `method_space`: these check the content of the file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    parameters: tuple[Parameter, ...]
    origin: str = "space"

    @classmethod
    def parse(cls, content: object, origin: str = "space") -> "Space":
        """Return the space that a mapping from name to form describes; errors name the file `origin`.

        Raises:
            SpaceError: a form is wrong, or a condition names an unknown parameter, a value that the parent
                never takes, or leads in a circle; the message has all such faults.
        """
        space, faults = cls.parse_sound(content, origin)
        if faults:
            raise SpaceError(f"{origin}: {'; '.join(faults)}")
        return space

    @classmethod
    def parse_sound(cls, content: object, origin: str = "space") -> "tuple[Space, list[str]]":
        """Return the space of the parameters that `parse` would not refuse, and the faults of the others.

        Raises:
            SpaceError: the content is no mapping of a usable size.
        """
        if not isinstance(content, Mapping):
            found = "nothing" if content is None else type(content).__name__
            raise SpaceError(f"{origin}: given {found}; allowed: a mapping of parameter to form")
        if len(content) > MOST_CHOICES:
            raise SpaceError(f"{origin}: given {len(content):,} parameters; allowed: up to {MOST_CHOICES:,}")
        parsed: list[Parameter] = []
        faults: list[str] = []
        for name, form in content.items():
            with _noted(faults):
                parsed.append(parse_parameter(str(name), form))
        by_name, sound = {parameter.name: parameter for parameter in parsed}, []
        for parameter in parsed:
            # What is wrong with a parent is told already, not that its children do not find it.
            if all(parent in by_name or parent not in content for parent in parameter.when_given):
                with _noted(faults):
                    _check_condition(parameter, by_name)
                    sound.append(parameter)
        ordered: tuple[Parameter, ...] = ()
        with _noted([] if faults else faults):
            ordered = _parents_first(sound)
        return cls(parameters=ordered, origin=origin), faults

    def forms(self) -> dict[str, Any]:
        """Return the space as plain values, in the forms of a space file: `parse` reads them back."""
        return {parameter.name: parameter.to_form() for parameter in self.parameters}

    @property
    def names(self) -> tuple[str, ...]:
        """Every parameter, searched or fixed, parents first."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def searched(self) -> tuple[Choice | Range, ...]:
        """The parameters that are searched, parents first."""
        return tuple(p for p in self.parameters if not isinstance(p, Fixed))

    @property
    def always_searched(self) -> tuple[str, ...]:
        """The searched parameters that are active in every configuration."""
        always = _remaining(self.parameters, _must_hold)
        return tuple(parameter.name for parameter in self.searched if parameter.name in always)

    @property
    def fixed(self) -> dict[str, Scalar]:
        """The values of the parameters that are not searched."""
        return {p.name: p.default for p in self.parameters if isinstance(p, Fixed)}

    def __getitem__(self, name: str) -> Parameter:
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        hint, known = did_you_mean(name, self.names), ", ".join(self.names)
        raise SpaceError(f"{self.origin}: unknown parameter {name!r}.{hint} Known: {known}.")

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def defaults(self) -> dict[str, Scalar]:
        """Return the default of every parameter that is active under the defaults."""
        return self.complete({parameter.name: parameter.default for parameter in self.parameters})

    def complete(self, values: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """Return the active part of `values`, with the fixed values added, parents first.

        Raises:
            SpaceError: a searched parameter is active and has no value.
        """
        known = {**values, **self.fixed}
        active = self.active(known)
        missing = [name for name in active if name not in known]
        if missing:
            raise SpaceError(f"{self.origin}: no value for {', '.join(missing)}; given {dict(values)}")
        return {name: known[name] for name in active}

    def active(self, values: Mapping[str, Scalar]) -> tuple[str, ...]:
        """Return the names of the parameters, searched or fixed, whose conditions hold under `values`.

        If `values` names a fixed parameter, the value there counts.
        """
        known = {**self.fixed, **values}
        return tuple(_remaining(self.parameters, lambda p, allowed: among(known.get(p.name), allowed)))

    def pin(self, name: str, value: Scalar) -> "Space":
        """Return this space with one parameter fixed at `value`, which may lie outside its range.

        Parameters whose conditions can no longer hold are removed.

        Raises:
            SpaceError: the parameter is unknown, or the value is of another type.
        """
        old = self[name]
        given = float(value) if old.type == "float" and type(value) is int else value
        if not isinstance(given, bool | int | float | str) or type_name(given) != old.type:
            # The value is not of the file: its name would send the user there.
            allowed = f"{IN_WORDS[old.type]}, such as {old.default!r}"
            raise SpaceError(f"{name}: given {value!r}; allowed: {allowed}")
        return self._with(Fixed(name=name, default=given, when=old.when_given, source=old.source))

    def _with(self, pinned: Fixed) -> "Space":
        """Return this space with `pinned` in its place, without parameters that can no longer be active."""
        changed = (pinned if parameter.name == pinned.name else parameter for parameter in self.parameters)
        return Space(parameters=tuple(_remaining(changed, _can_hold).values()), origin=self.origin)

    def settled(self) -> "Space":
        """Return this space for a search: each fixed parameter loses its alternative values.

        Parameters whose conditions can no longer hold are removed.
        """
        space = self
        for parameter in self.parameters:
            if isinstance(parameter, Fixed) and parameter.of and parameter.name in space:
                space = space._with(parameter.model_copy(update={"of": (), "given": {}}))
        return space

    def with_levels(self, count: int) -> "Space":
        """Return this space with each range cut into at most `count` levels, evenly on its own scale.

        The level nearest to the default is the default. An integer range keeps all its values if other
        parameters depend on it.

        Raises:
            SpaceError: fewer than two levels.
        """
        if count < 2:
            raise SpaceError(f"{self.origin}: given {count} levels of a range; allowed: 2 or more")
        parents = {parent for parameter in self.parameters for parent in parameter.when}
        cut = (
            p.levels(count) if isinstance(p, Range) and p.name not in parents else p for p in self.parameters
        )
        return Space(parameters=tuple(cut), origin=self.origin)

    def types(self) -> dict[str, TypeName]:
        """Return the type of every parameter's values: "float", "int", "string" or "bool"."""
        return {parameter.name: parameter.type for parameter in self.parameters}

    def in_words(self) -> dict[str, str]:
        """Return each parameter's values, default and condition in words, by its name."""
        return {parameter.name: _in_words(parameter) for parameter in self.parameters}

    def difference(self, earlier: "Space") -> list[str]:
        """Return the changes since `earlier`, one phrase each; if there is none, a search can continue."""
        before, now = earlier.in_words(), self.in_words()
        gone = [f"{name}: removed (was {before[name]})" for name in before if name not in now]
        new = [f"{name}: added ({now[name]})" for name in now if name not in before]
        common = [name for name in now if name in before and now[name] != before[name]]
        return [f"{name}: was {before[name]}, is {now[name]}" for name in common] + gone + new

    @property
    def is_finite(self) -> bool:
        """Whether no searched range is continuous."""
        return all(parameter.size() is not None for parameter in self.parameters)

    def size(self) -> int | None:
        """Return the number of different configurations, or None if a searched range is continuous.

        Raises:
            SpaceError: conditions combine so many parameters that the configurations cannot be counted.
        """
        return count_configurations(self.parameters) if self.is_finite else None

    def grid(self) -> Iterator[dict[str, Scalar]]:
        """Yield every configuration of a finite space once, fixed values included.

        Raises:
            SpaceError: a searched range is continuous.
        """
        continuous = [parameter.name for parameter in self.parameters if parameter.size() is None]
        if continuous:
            raise SpaceError(
                f"{self.origin}: no grid over the continuous {', '.join(continuous)}; "
                "allowed: choice, int, log_int, fixed"
            )
        yield from _assignments(self.parameters, {})


@contextmanager
def _noted(faults: list[str]) -> Iterator[None]:
    """Add the SpaceError of a `with` block to the faults of a file, which are told together."""
    try:
        yield
    except SpaceError as error:
        faults.append(str(error))


def _remaining(
    parameters: Iterable[Parameter], holds: Callable[[Parameter, tuple[Scalar, ...]], bool]
) -> dict[str, Parameter]:
    """Return the parameters (parents first) whose parents remain and whose conditions hold, by name."""
    kept: dict[str, Parameter] = {}
    for parameter in parameters:
        if all(p in kept and holds(kept[p], allowed) for p, allowed in parameter.when.items()):
            kept[parameter.name] = parameter
    return kept


def _assignments(
    parameters: tuple[Parameter, ...] | list[Parameter], chosen: dict[str, Scalar]
) -> Iterator[dict[str, Scalar]]:
    """Yield every combination of values of the active `parameters` (parents first)."""
    if not parameters:
        yield dict(chosen)
        return
    first, rest = parameters[0], parameters[1:]
    if not all(among(chosen.get(p), allowed) for p, allowed in first.when.items()):
        yield from _assignments(rest, chosen)
        return
    for value in first.values():
        yield from _assignments(rest, {**chosen, first.name: value})


def _takes(parent: Parameter, value: Scalar) -> bool:
    """Whether a condition on `value` can hold; the parent is no continuous range."""
    if isinstance(parent, Fixed) and parent.of:
        return among(value, parent.of)
    return parent.contains(value)


def _can_hold(parent: Parameter, allowed: tuple[Scalar, ...]) -> bool:
    return any(_takes(parent, value) for value in allowed)


def _must_hold(parent: Parameter, allowed: tuple[Scalar, ...]) -> bool:
    """Whether a condition holds for every value of an active parent."""
    return parent.size() is not None and all(among(value, allowed) for value in parent.values())


def _check_condition(parameter: Parameter, by_name: Mapping[str, Parameter]) -> None:
    for name, allowed in parameter.when_given.items():
        parent = by_name.get(name)
        if parent is None:
            hint = did_you_mean(name, by_name)
            raise SpaceError(f"{parameter.name}: when: given the unknown parameter {name!r}.{hint}")
        if isinstance(parent, Range) and parent.size() is None:
            given = f"given {name}, a range of fractions ({parent.describe()})"
            allowed_parents = "a choice, a range of whole numbers or a fixed value"
            raise SpaceError(f"{parameter.name}: when: {given}; allowed: {allowed_parents}")
        if isinstance(parent, Fixed) and not parent.of:
            # A condition on a fixed parent may also name values that the parent does not have here.
            never = () if _can_hold(parent, allowed) else allowed
        else:
            never = tuple(value for value in allowed if not _takes(parent, value))
        if never:
            known = parent.choices if isinstance(parent, Choice) else getattr(parent, "of", ())
            hint = did_you_mean(str(never[0]), map(str, known))
            given = f"{name} = {', '.join(map(repr, never))}, which it never takes"
            raise SpaceError(f"{parameter.name}: when: given {given}; allowed: {parent.describe()}.{hint}")


def _parents_first(parameters: list[Parameter]) -> tuple[Parameter, ...]:
    ordered: dict[str, Parameter] = {}
    waiting = list(parameters)
    while waiting:
        ready = next((p for p in waiting if all(parent in ordered for parent in p.when)), None)
        if ready is None:
            names = ", ".join(p.name for p in waiting)
            raise SpaceError(f"{names}: their conditions lead in a circle; allowed: parents without one")
        ordered[ready.name] = ready
        waiting.remove(ready)
    return tuple(ordered.values())


def _in_words(parameter: Parameter) -> str:
    conditions = [f"{parent} in {list(values)}" for parent, values in parameter.when.items()]
    return " when ".join([parameter.describe(), *filter(None, [" and ".join(conditions)])])
