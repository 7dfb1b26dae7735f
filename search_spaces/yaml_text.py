"""The YAML that our files are written in: plain values of version 1.2, each key once, of bounded size.

A value is a mapping with keys that are plain values, a list, text, a whole number of 64 bits, a number, true,
false or null. There are no dates, no objects and no other tags. An anchor may be used again, but not so often
that a short text stands for a huge one.
"""

import os
import re
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from contrasweep.given_files import MIB, FileRefused, read_given_text
from contrasweep.names import nearest
from contrasweep.search_spaces.parameters import WHOLE_NUMBERS, SpaceError

MOST_BYTES = MIB
"""The size of the largest YAML file that is read. The largest of ours has 20 thousand bytes."""

MOST_VALUES = 50_000
"""The largest number of values (mappings, lists, keys, texts, numbers) in one file, every use of an anchor
counted."""

_ENDINGS = (".yaml", ".yml")
_MOST_BESIDE = 1000
"""How many entries of a folder are read to suggest one in place of a file that is not there."""

DEEPEST = 50
"""How deep mappings and lists may lie in each other."""

_INTEGER = r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
_FLOAT = r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
_BOOL = r"true|false|True|False"
_NULL = r"~|null|Null|NULL|"
_TEXT_OF_ONE_VALUE = 100
"""A longer text counts as several values, one for so many characters: an anchor may repeat it."""


class _Loader(yaml.SafeLoader):
    """Builds the values of a text, and refuses what the dialect does not have."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._values = 0
        self._sizes: dict[int, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Return the next node, or the one that an anchor leads to; count its values."""
        self._depth += 1
        self._values += 1
        if self._depth > DEEPEST:
            raise SpaceError(f"mappings and lists lie more than {DEEPEST} deep in each other")
        self._refuse_more(self._values)
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        if node is not None and id(node) not in self._sizes:
            self._sizes[id(node)] = self._size(node)
        return node

    def _size(self, node: yaml.Node) -> int:
        """Return the number of values that a new node stands for; those that it holds are counted already."""
        if isinstance(node, yaml.ScalarNode):
            return 1 + len(node.value) // _TEXT_OF_ONE_VALUE
        pairs = isinstance(node, yaml.MappingNode)
        inner = [one for pair in node.value for one in pair] if pairs else node.value
        size = 1 + sum(self._sizes[id(one)] for one in inner)
        self._refuse_more(size)
        return size

    def _refuse_more(self, values: int) -> None:
        if values > MOST_VALUES:
            raise SpaceError(f"more than {MOST_VALUES:,} values (an anchor counts at every use)")


def read_yaml(path: str | Path) -> object:
    """Return the content of a YAML file.

    Raises:
        SpaceError: the file is missing, not a regular file, larger than `MOST_BYTES`, not UTF-8, or not YAML
            of our dialect.
    """
    try:
        return parse_yaml(read_given_text(path, MOST_BYTES), str(path))
    except FileRefused as error:
        near = "" if os.path.lexists(path) else _near(Path(path))
        raise SpaceError(f"{error}{near}") from None


def _near(path: Path) -> str:
    """Return `. Did you mean 'x'?` with the YAML file of the same folder that is named most like this one."""
    try:
        with os.scandir(path.parent) as entries:
            beside = [Path(one.name) for one in islice(entries, _MOST_BESIDE)]
    except (OSError, ValueError):
        return ""
    # By the names without their endings: two files are not alike because both are .yaml.
    by_stem = {one.stem: one for one in beside if one.suffix in _ENDINGS}
    stem = nearest(path.stem, by_stem)
    return "" if stem is None else f". Did you mean {str(path.parent / by_stem[stem])!r}?"


def parse_yaml(text: str, origin: str) -> object:
    """Return the content of YAML text: `1e-3` is a number, `no` is a word, and a repeated key is an error.

    Raises:
        SpaceError: the text is not YAML of our dialect; the message names `origin`.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except SpaceError as error:
        raise SpaceError(f"{origin}: {error}") from None
    except yaml.YAMLError as error:
        raise SpaceError(f"{origin}: is not valid YAML: {_told(error)}") from None


def _told(error: yaml.YAMLError) -> str:
    """Return what is wrong, and on which line."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        context = f"{error.context}, " if error.context else ""
        return f"line {mark.line + 1}, column {mark.column + 1}: {context}{error.problem}"
    return " ".join(str(error).split())


def _mapping(loader: _Loader, node: yaml.Node) -> dict[Any, Any]:
    if not isinstance(node, yaml.MappingNode):
        raise _wrong(node, "mapping")
    content: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise SpaceError(f"line {_line(key_node)}: given a mapping or a list as a key; allowed: a word")
        key = loader.construct_object(key_node)
        if key in content:
            raise SpaceError(
                f"{key}: given twice in the mapping that starts on line {_line(node)}; allowed: once"
            )
        content[key] = loader.construct_object(value_node)
    return content


def _list(loader: _Loader, node: yaml.Node) -> list[Any]:
    if not isinstance(node, yaml.SequenceNode):
        raise _wrong(node, "list")
    return [loader.construct_object(item) for item in node.value]


def _text(loader: _Loader, node: yaml.Node) -> str:
    return _scalar(node, "text")


def _integer(loader: _Loader, node: yaml.Node) -> int:
    text = _scalar(node, "whole number", _INTEGER)
    # No number of 64 bits has a hundred digits, and Python refuses to read thousands.
    value = int(text, 0 if text.startswith(("0o", "0x")) else 10) if len(text) < 100 else None
    if value is None or value not in WHOLE_NUMBERS:
        given = text if len(text) < 40 else f"a number of {len(text)} digits"
        raise SpaceError(f"line {_line(node)}: given {given}; allowed: whole numbers of 64 bits")
    return value


def _float(loader: _Loader, node: yaml.Node) -> float:
    text = _scalar(node, "number", _FLOAT).lower()
    return float(text.replace(".inf", "inf").replace(".nan", "nan"))


def _bool(loader: _Loader, node: yaml.Node) -> bool:
    return _scalar(node, "true or false", _BOOL).lower() == "true"


def _null(loader: _Loader, node: yaml.Node) -> None:
    _scalar(node, "null", _NULL)


def _scalar(node: yaml.Node, kind: str, form: str = r"(?s:.*)") -> str:
    if not isinstance(node, yaml.ScalarNode) or not re.fullmatch(form, node.value):
        raise _wrong(node, kind)
    return str(node.value)


def _wrong(node: yaml.Node, kind: str) -> SpaceError:
    return SpaceError(f"line {_line(node)}: the value with the tag {node.tag} is no {kind}")


def _unknown(loader: _Loader, node: yaml.Node) -> None:
    raise SpaceError(f"line {_line(node)}: given the tag {node.tag}; allowed: plain values, without a tag")


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


# Nothing of YAML 1.1 is inherited.
_Loader.yaml_implicit_resolvers, _Loader.yaml_constructors = {}, {}
_FIRST = {_INTEGER: "-+0123456789", _FLOAT: "-+.0123456789", _BOOL: "tfTF", _NULL: ["~", "n", "N", ""]}
for kind, form in (("int", _INTEGER), ("float", _FLOAT), ("bool", _BOOL), ("null", _NULL)):
    # PyYAML only matches the beginning.
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{kind}", re.compile(rf"(?:{form})\Z"), list(_FIRST[form])
    )
for kind, construct in {
    "map": _mapping,
    "seq": _list,
    "str": _text,
    "int": _integer,
    "float": _float,
    "bool": _bool,
    "null": _null,
}.items():
    _Loader.add_constructor(f"tag:yaml.org,2002:{kind}", construct)
_Loader.add_constructor(None, _unknown)
