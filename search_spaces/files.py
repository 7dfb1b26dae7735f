"""Space files and presets, read from a path or from the package."""

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypedDict

from contrasweep.names import did_you_mean
from contrasweep.search_spaces.parameters import Parameter, Scalar, SpaceError, parse_parameter
from contrasweep.search_spaces.space import Space
from contrasweep.search_spaces.yaml_text import parse_yaml, read_yaml


class Preset(TypedDict):
    """A paper's settings for a method on a dataset, with the expected result and the source of each setting.

    A source is a place in a paper (`CCL-K, Table 3`), a file of its authors' code (`CCL-K's released code,
    lars.py`), or our own choice (`ours: the paper gives none`).
    """

    settings: Mapping[str, Scalar | list[Scalar]]
    expect: str
    sources: Mapping[str, str]


def load_space(path: str | Path) -> Space:
    """Return the search space of a YAML file.

    Raises:
        SpaceError: the file is missing, it is not YAML, or its content is wrong.
    """
    return Space.parse(read_yaml(path), str(path))


@cache
def method_space(method: str) -> Space:
    """Return the search space that ships for `method`.

    Raises:
        SpaceError: no space ships for the method; the message suggests the nearest name.
    """
    known = available_spaces()
    if method not in known:
        hint = did_you_mean(method, known, "method")
        raise SpaceError(f"no search space ships for method {method!r}.{hint} Known: {', '.join(known)}.")
    origin = f"search_spaces/{method}.yaml"
    return Space.parse(parse_yaml(shipped_text(f"{method}.yaml"), origin), origin)


@cache
def learning_rates() -> Mapping[str, Parameter]:
    """Return the range of `optimizer.lr` that each optimizer has by default."""
    origin = "search_spaces/optimizers.yaml"
    content = parse_yaml(shipped_text("optimizers.yaml"), origin)
    if not isinstance(content, dict):
        raise SpaceError(f"{origin}: allowed: a mapping of optimizer to range")
    return {optimizer: parse_parameter("optimizer.lr", form) for optimizer, form in content.items()}


@cache
def preset(method: str, dataset: str) -> Preset | None:
    """Return the paper's settings for `method` on `dataset`, or None if no paper gives any."""
    if (method, dataset) not in available_presets():
        return None
    name = f"presets/{method}@{dataset}.yaml"
    content = parse_yaml(shipped_text(name), f"search_spaces/{name}")
    if not isinstance(content, dict) or set(content) != {"settings", "expect", "sources"}:
        raise SpaceError(f"search_spaces/{name}: allowed: exactly the keys settings, expect and sources")
    sources = _source_of_each(content["settings"], content["sources"], f"search_spaces/{name}")
    return Preset(settings=content["settings"], expect=content["expect"], sources=sources)


def _source_of_each(
    settings: Mapping[str, Any], sources: Mapping[str, list[str]], name: str
) -> dict[str, str]:
    """Turn `source: [settings]` of a preset into the source of each setting, in the order of the settings."""
    for source in sources:
        if not re.fullmatch(r"ours: .+|[^,:]+, .+", source):
            raise SpaceError(f"{name}: the source {source!r} must read `PAPER, PLACE` or `ours: WHY`")
    found = {setting: source for source, named in sources.items() for setting in named}
    counts = Counter(setting for named in sources.values() for setting in named)
    wrong = [one for one in {**settings, **counts} if one not in settings or counts[one] != 1]
    if wrong:
        raise SpaceError(
            f"{name}: every setting has one source; these have none, several or no value: {wrong}"
        )
    return {setting: found[setting] for setting in settings}


def available_spaces() -> tuple[str, ...]:
    """Return the methods whose search space ships with the package."""
    return tuple(name for name in shipped_names() if name not in ("datasets", "optimizers"))


def available_presets() -> tuple[tuple[str, str], ...]:
    """Return the (method, dataset) pairs that have a preset."""
    pairs = (name.partition("@") for name in shipped_names("presets"))
    return tuple((method, dataset) for method, _, dataset in pairs)


def shipped_names(folder: str = ".") -> tuple[str, ...]:
    """Return the names, without ending, of the YAML files that ship in `search_spaces` or a folder of it."""
    names = sorted(entry.name for entry in files("contrasweep.search_spaces").joinpath(folder).iterdir())
    return tuple(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))


def shipped_text(path: str) -> str:
    """Return the text of a file that ships in `search_spaces`."""
    return files("contrasweep.search_spaces").joinpath(path).read_text(encoding="utf-8")
