"""The options in the name of a dataset: `NAME:OPTION=VALUE,OPTION=VALUE`. Nothing here imports torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contrasweep.names import unknown

OptionValue = float | int | str
Options = Mapping[str, OptionValue]


@dataclass(frozen=True)
class DatasetOption:
    """One option of a family: its values are `choices`, numbers from `low` to `high`, or any word.

    Where `default` is None, the option must be given. Unless the bounds say otherwise, a number
    is at most as large as a float holds every whole number.
    """

    summary: str
    kind: type[float] | type[int] | type[str]
    default: OptionValue | None
    choices: tuple[str, ...] = ()
    low: float = -(2.0**53)
    high: float = 2.0**53

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
            allowed = f"{self.low:g} to {self.high:g}"
            raise ValueError(f"{name} of dataset {dataset} must be {allowed}, given {text}")
        return value


class OptionsInName:
    """A family of datasets whose name takes options: `NAME` or `NAME:OPTION=VALUE,OPTION=VALUE`."""

    name: str
    options: Mapping[str, DatasetOption]

    @property
    def needs_options(self) -> bool:
        """Whether an option has no default, so that the bare name is no dataset."""
        return any(option.default is None for option in self.options.values())

    def parse(self, given: str) -> dict[str, OptionValue]:
        """Return the values of all options from the text behind the name, `OPTION=VALUE,OPTION=VALUE`.

        Raises:
            ValueError: an option is unknown (with the nearest) or missing, or a value is not allowed.
        """
        values: dict[str, OptionValue] = {}
        for item in filter(None, given.split(",")):
            name, equals, text = item.partition("=")
            if name not in self.options:
                raise ValueError(unknown(f"option of dataset {self.name}", name, self.options))
            if not equals or not text:
                raise ValueError(f"option {name} of dataset {self.name} needs a value: {name}=...")
            values[name] = self.options[name].parse(self.name, name, text)
        missing = [name for name, one in self.options.items() if one.default is None and name not in values]
        if missing:
            raise ValueError(self._needs(missing, given))
        defaults = {name: one.default for name, one in self.options.items() if one.default is not None}
        return {name: values[name] if name in values else defaults[name] for name in self.options}

    def _needs(self, missing: Sequence[str], given: str) -> str:
        """Return the message for the options that are missing beside those given, and what each is."""
        spelled = ",".join([*filter(None, given.split(",")), *(f"{name}=..." for name in missing)])
        each = "; ".join(f"{name}: {self.options[name].summary}" for name in missing)
        return f"dataset {self.name} needs {' and '.join(missing)}: {self.name}:{spelled} ({each})"

    def full_name(self, options: Options) -> str:
        """Return the name with the options that differ from their defaults."""
        return spelled_name(self.name, self.options, options)


def spelled_name(dataset: str, known: Mapping[str, DatasetOption], options: Options) -> str:
    """Return a dataset's name with the options that differ from their defaults."""
    parts = [f"{name}={value}" for name, value in options.items() if value != known[name].default]
    return f"{dataset}:{','.join(parts)}" if parts else dataset
