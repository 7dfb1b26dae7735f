"""The datasets' defaults for settings outside the method: the shipped file, and the files of plug-ins."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from contrasweep.names import did_you_mean
from contrasweep.search_spaces.files import shipped_text
from contrasweep.search_spaces.parameters import Scalar, SpaceError
from contrasweep.search_spaces.yaml_text import parse_yaml, read_yaml

Settings = Mapping[str, Scalar]

EXTENDS = "extends"


@cache
def shipped_dataset_settings() -> Mapping[str, Settings]:
    """Return the settings of our own datasets, by the dataset's bare name.

    Raises:
        SpaceError: the file is wrong.
    """
    origin = "search_spaces/datasets.yaml"
    return parse_dataset_settings(parse_yaml(shipped_text("datasets.yaml"), origin), origin)


def load_dataset_settings(path: str | Path) -> Settings:
    """Return the settings of one dataset from its YAML file, which maps dotted settings to values.

    `extends: NAME` takes all settings of one of our own datasets; the others in the file change or add.

    Raises:
        SpaceError: the file is missing or is not YAML, it extends an unknown dataset (the message suggests
            the nearest name), or a value is not a number, a word or a boolean.
    """
    content = {**shipped_dataset_settings(), str(path): read_yaml(path)}
    return parse_dataset_settings(content, str(path))[str(path)]


def parse_dataset_settings(content: object, origin: str) -> Mapping[str, Settings]:
    """Return the settings by dataset, each with what it extends filled in.

    Raises:
        SpaceError: an entry is not a mapping of settings to values, or it extends an unknown entry or itself.
    """
    if not isinstance(content, Mapping):
        given = type(content).__name__
        raise SpaceError(f"{origin}: given {given}; allowed: a mapping of dataset to settings")
    entries = {str(name): _entry(str(name), settings, origin) for name, settings in content.items()}
    return MappingProxyType({name: _with_extended(name, entries, origin) for name in entries})


def _entry(name: str, settings: object, origin: str) -> Settings:
    if not isinstance(settings, Mapping):
        given = type(settings).__name__
        raise SpaceError(f"{origin}: {name}: given {given}; allowed: a mapping of setting to value")
    for setting, value in settings.items():
        if not isinstance(value, bool | int | float | str):
            allowed = "a number, a word, true or false"
            raise SpaceError(f"{origin}: {name}: {setting}: given {value!r}; allowed: {allowed}")
    return {str(setting): value for setting, value in settings.items()}


def _with_extended(name: str, entries: Mapping[str, Settings], origin: str) -> Settings:
    chain = [name]
    while EXTENDS in (last := entries[chain[-1]]):
        parent = str(last[EXTENDS])
        if parent not in entries:
            raise SpaceError(
                f"{origin}: {chain[-1]}: extends unknown {parent!r}.{did_you_mean(parent, entries)}"
            )
        if parent in chain:
            raise SpaceError(f"{origin}: {name}: extends itself: {' -> '.join([*chain, parent])}")
        chain.append(parent)
    merged: dict[str, Scalar] = {}
    for one in reversed(chain):
        merged |= {setting: value for setting, value in entries[one].items() if setting != EXTENDS}
    return MappingProxyType(merged)
