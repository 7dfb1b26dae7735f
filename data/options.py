"""The options in the name of a dataset: `NAME:OPTION=VALUE,OPTION=VALUE`. Nothing here imports torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contrasweep.libraries import require
from contrasweep.names import unknown

OptionValue = float | int | str
Options = Mapping[str, OptionValue]

LARGEST = 2.0**53
"""Up to this number a float holds every whole number."""


@dataclass(frozen=True)
class DatasetOption:
    """One option of a family: its values are `choices`, numbers from `low` to `high`, or any word.

    Where `default` is None, the option must be given, unless the option that `instead` names is. With `bare`
    its value stands first, without its name: `hf:OWNER/NAME`. Unless the bounds say otherwise, a number is at
    most as large as a float holds every whole number. Text that is not given is "". With `of_condition` the
    option changes the condition alone, which a loss may use, but no image, label, split or test score. With
    `cuts_test` it decides which test images are cut off where there are none.
    """

    summary: str
    kind: type[float] | type[int] | type[str]
    default: OptionValue | None
    choices: tuple[str, ...] = ()
    low: float = -LARGEST
    high: float = LARGEST
    bare: bool = False
    instead: str = ""
    of_condition: bool = False
    cuts_test: bool = False

    def parse(self, dataset: str, name: str, text: str) -> OptionValue:
        """Return the value that `text` spells.

        Raises:
            ValueError: it spells no value, or one that is not allowed.
        """
        if self.kind is str:
            if self.choices and text not in self.choices:
                raise ValueError(unknown(f"{name} of dataset {dataset}", text, self.choices))
            return text
        try:
            value = self.kind(text)
        except ValueError:
            word = "whole number" if self.kind is int else "number"
            raise ValueError(f"{name} of dataset {dataset} must be a {word}, given {text!r}") from None
        assert not isinstance(value, str)
        if not self.low <= value <= self.high:
            no_highest = self.high == LARGEST and value < self.low
            allowed = f"at least {self.low:g}" if no_highest else f"{self.low:g} to {self.high:g}"
            raise ValueError(f"{name} of dataset {dataset} must be {allowed}, given {text}")
        return value


class OptionsInName:
    """A family of datasets whose name takes options: `NAME` or `NAME:OPTION=VALUE,OPTION=VALUE`.

    `library` is the optional library that reads the datasets, "" for none; see `libraries.require`.
    """

    name: str
    options: Mapping[str, DatasetOption]
    library: str = ""

    @property
    def needs_options(self) -> bool:
        """Whether an option has no default, so that the bare name is no dataset."""
        return any(option.default is None for option in self.options.values())

    def parse(self, given: str) -> dict[str, OptionValue]:
        """Return the values of all options from the text behind the name, `OPTION=VALUE,OPTION=VALUE`.

        Raises:
            ValueError: an option is unknown (with the nearest) or missing, or a value is not allowed.
        """
        if self.library:
            require(self.library, f"dataset {self.name}")
        values: dict[str, OptionValue] = {}
        for place, item in enumerate(filter(None, given.split(","))):
            name, equals, text = self._named(item) if place == 0 else item.partition("=")
            if name not in self.options:
                raise ValueError(unknown(f"option of dataset {self.name}", name, self.options))
            if not equals or not text:
                raise ValueError(f"option {name} of dataset {self.name} needs a value: {name}=...")
            values[name] = self.options[name].parse(self.name, name, text)
        missing = [name for name in self._needed if not self._stood_in(name, values)]
        if missing:
            raise ValueError(self._needs(missing, given))
        defaults = {name: "" if one.default is None else one.default for name, one in self.options.items()}
        return {name: values.get(name, defaults[name]) for name in self.options}

    @property
    def form(self) -> str:
        """The shortest name of a dataset of the family, with dots or capitals for what must be given."""
        return self._spelled(self._needed)

    @property
    def _needed(self) -> list[str]:
        return [name for name, one in self.options.items() if one.default is None]

    def _named(self, item: str) -> tuple[str, str, str]:
        """Return the name of the first option, an equals sign and the value; a value may stand bare."""
        bare = next((name for name, one in self.options.items() if one.bare), None)
        return item.partition("=") if bare is None or "=" in item else (bare, "=", item)

    def _stood_in(self, name: str, values: Mapping[str, OptionValue]) -> bool:
        """Whether a needed option, or the one that may stand in for it, is given; both are refused."""
        instead = self.options[name].instead
        if name in values and instead in values:
            raise ValueError(f"dataset {self.name} takes either a {name} or {instead}=, given both")
        return name in values or instead in values

    def _needs(self, missing: Sequence[str], given: str) -> str:
        """Return the message for the options that are missing beside those given, and what each is."""
        spelled = self._spelled(missing, given)
        each = [(name, self.options[name]) for name in missing]
        told = "; ".join(f"{name}: {one.summary}" for name, one in each)
        others = [f"{self.name}:{one.instead}=..." for _, one in each if one.instead]
        instead = f"; or {' or '.join(others)}" if others else ""
        return f"dataset {self.name} needs {' and '.join(missing)}: {spelled} ({told}){instead}"

    def _spelled(self, missing: Sequence[str], given: str = "") -> str:
        """Return the name with the given options, and with the missing ones still to be filled in."""
        bare = [name.upper() for name in missing if self.options[name].bare]
        others = [f"{name}=..." for name in missing if not self.options[name].bare]
        return f"{self.name}:{','.join([*bare, *filter(None, given.split(',')), *others])}"

    def full_name(self, options: Options) -> str:
        """Return the name with the options that differ from their defaults."""
        return spelled_name(self.name, self.options, options)


def spelled_name(dataset: str, known: Mapping[str, DatasetOption], options: Options) -> str:
    """Return a dataset's name with the options that differ from their defaults."""
    changed = {name: value for name, value in options.items() if value not in (known[name].default, "")}
    parts = [str(value) if known[name].bare else f"{name}={value}" for name, value in changed.items()]
    return f"{dataset}:{','.join(parts)}" if parts else dataset
