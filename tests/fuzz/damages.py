"""Damages of a document: of the content that it holds, and of its bytes."""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

Path_ = tuple[str | int, ...]

ODD: tuple[Any, ...] = (
    *(None, True, False, "", "x", "a\nb", "a\0b", "é", "../x", "2026-01-02", "nan"),
    *(0, 1, -1, 7, 10**9, 2**31, 2**63, -(2**63), 10**30, 10**400),
    *(0.0, 1.5, -0.5, 1e-300, 1e308, -1e308, float("nan"), float("inf")),
    *([], {}, [1], ["val.accuracy"], {"a": 1}, {"choice": ["a"], "default": "a"}, [[[[]]]]),
)


def _places(content: Any, above: Path_ = ()) -> Iterator[Path_]:
    """Yield the path of every value inside a JSON document."""
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        yield (*above, key)
        if isinstance(value, dict | list):
            yield from _places(value, (*above, key))


def _place(content: Any, draws: random.Random) -> tuple[Any, Any]:
    """Return a container at random within a document, and a key of it. Each depth is as likely as another."""
    places = list(_places(content))
    depth = draws.choice(sorted({len(place) for place in places}))
    *above, key = draws.choice([place for place in places if len(place) == depth])
    for part in above:
        content = content[part]
    return content, key


Change = Callable[[Any, random.Random], str]
"""Changes a content in place, and says what it changed."""


def drop(content: Any, draws: random.Random) -> str:
    where, key = _place(content, draws)
    del where[key]
    return f"without {key}"


def rename(content: Any, draws: random.Random) -> str:
    where, key = _place(content, draws)
    if isinstance(where, list):
        where.reverse()
        return f"a list of {len(where)} reversed"
    new = draws.choice([f"{key}x", key.upper(), "", "a.b", "views.size.x", "hyperparameters", "lambda"])
    where[new] = where.pop(key)
    return f"{key} renamed to {new!r}"


def replace(content: Any, draws: random.Random) -> str:
    where, key = _place(content, draws)
    where[key] = draws.choice(ODD)
    return f"{key} replaced by {str(where[key])[:40]!r}"


def swap(content: Any, draws: random.Random) -> str:
    (one, first), (other, second) = _place(content, draws), _place(content, draws)
    held = json.loads(json.dumps([one[first], other[second]]))
    other[second], one[first] = held
    return f"{first} and {second} swapped"


def add(content: Any, draws: random.Random) -> str:
    where, key = _place(content, draws)
    if isinstance(where, list):
        where.append(draws.choice([*ODD, where[0]]))
    else:
        where[draws.choice(["extra", "trials", "metric", "default", "when"])] = draws.choice(ODD)
    return f"a value beside {key}"


def truncate(whole: bytes, draws: random.Random) -> tuple[bytes, str]:
    end = draws.choice([0, 1, draws.randrange(len(whole))])
    return whole[:end], f"{end} of {len(whole)} bytes"


def garble(whole: bytes, draws: random.Random) -> tuple[bytes, str]:
    content, count = bytearray(whole), draws.choice([1, 3, 30])
    for _ in range(count):
        content[draws.randrange(len(content))] = draws.randrange(256)
    return bytes(content), f"{count} bytes changed"


CHANGES: tuple[Change, ...] = (drop, rename, replace, replace, swap, add)
GARBLINGS = (truncate, garble)
