"""Damages of YAML files: of their content, of their bytes, and what only YAML can hold."""

import random
from collections.abc import Callable
from typing import Any

import yaml

from tests.fuzz.damages import CHANGES, GARBLINGS

LAUGHS = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{one}: &{one} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, one in zip("abcdefgh", "bcdefghi", strict=True)
)
VALUES = (
    *("2024-13-45", "2024-01-01 99:00:00", "!!timestamp x", "!!int x", "!!float x", "!!bool x", "!!null x"),
    *("!!binary '%'", "!!python/object/apply:os.system [id]", "!!python/name:os.system", "!!set {a}"),
    *("!<x> 1", "1e999", "-.inf", ".nan", "0x" + "f" * 99, "0o777", "1:30", "1_000", "+.e", "=", "<<"),
    *("*gone", "&a [*a]", "'\\ud800'", '"\\ud800"', '"\\0"', '"\\x1b[31m"', "|\n  text\n  text", "? [1]"),
    *("{1: 2}", "{[1]: 2}", "{}", "[]", "9" * 20, "9" * 5000, "x" * 5000, "[" * 300, "- " * 30, "off"),
    *("~", "", "- 1\n  - 2", "1 # comment", "%TAG"),
)
TEXTS: tuple[Callable[[str], str], ...] = (
    lambda text: "",
    lambda text: LAUGHS,
    lambda text: LAUGHS + text,
    lambda text: f"<<: {{x: 1}}\n{text}",
    lambda text: text + text,
    lambda text: f"---\n{text}\n---\n{text}",
    lambda text: f"%YAML 1.1\n---\n{text}",
    lambda text: f"\ufeff{text}",
    lambda text: text.replace(":", " :\t"),
    lambda text: text.replace("\n", "\r"),
    lambda text: f"? {text}",
    lambda text: f"- {text}",
    lambda text: "[" * 10_000 + text,
    lambda text: "{a: " * 10_000 + text,
    lambda text: "- " * 10_000 + text,
    lambda text: text + "a: 1\n" * 3000,
    lambda text: text + "".join(f"a{number}: 1\n" for number in range(3000)),
)


def damaged(whole: str, draws: random.Random) -> tuple[bytes, str]:
    """Return a damaged YAML file, and what was done to it."""
    kind = draws.choice(["content", "content", "content", "content", "value", "value", "bytes", "text"])
    if kind == "content":
        content: Any = yaml.safe_load(whole)
        what = ", ".join(
            draws.choice(CHANGES)(content, draws) for _ in range(draws.choice([1, 1, 2])) if content
        )
        return yaml.safe_dump(content, allow_unicode=True, sort_keys=False).encode("utf-8", "replace"), what
    if kind == "value":
        lines = whole.splitlines()
        place, value = draws.randrange(len(lines)), draws.choice(VALUES)
        lines[place] = f"{lines[place].partition(':')[0]}: {value}"
        return "\n".join(lines).encode("utf-8", "replace"), f"line {place}: {value[:40]!r}"
    if kind == "bytes":
        return draws.choice(GARBLINGS)(whole.encode(), draws)
    number = draws.randrange(len(TEXTS))
    return TEXTS[number](whole).encode(), f"text {number}"
