"""Claims about anybody's table, read from a YAML file. docs/claims.md shows one."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, StringConstraints, ValidationError

from contrasweep.names import did_you_mean, nearest
from contrasweep.search_spaces.parameters import SpaceError
from contrasweep.search_spaces.tables import Claim, Strict
from contrasweep.search_spaces.yaml_text import read_yaml

Finite = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Margin = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class StatedClaim(Strict):
    """A claim: its text, the check that decides it, and the columns that `[:]` stands for (None: all)."""

    text: Text
    check: str
    columns: Annotated[tuple[str, ...], Field(min_length=1)] | None = None

    def as_claim(self) -> Claim:
        """Return the claim as the tables of the papers have it; no printed cells decide it."""
        return Claim(text=self.text, check=self.check, columns=self.columns, holds=None)


class Point(Strict):
    """A point of a curve: the cell that measures its height, its x (a number or a word), its y on a map."""

    row: str
    column: str
    x: Finite | str
    y: Finite | None = None


class ClaimsFile(Strict):
    """The claims about a table, and what the runs alone do not say about it.

    Attributes:
        claims: the claims.
        margins: the smallest difference that counts, by column, in the units of the runs.
        rows, columns: planned ones, in their order; those of the runs follow. A planned one may lack runs.
        curves: the points of each curve.
    """

    claims: Annotated[tuple[StatedClaim, ...], Field(min_length=1)]
    margins: Mapping[str, Margin] = Field(default_factory=dict)
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    curves: Mapping[str, Annotated[tuple[Point, ...], Field(min_length=1)]] = Field(default_factory=dict)


EXAMPLE = """claims: [{text: "New beats old.", check: 'row["new"].accuracy > row["old"].accuracy'}]"""
"""The shortest file of claims, for messages."""

_ALLOWED = {
    "string_type": "text",
    "string_too_short": "text of one letter or more",
    "tuple_type": "a list",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "greater_than_equal": "a number of at least 0",
    "dict_type": "a mapping of names to values",
    "too_short": "at least one",
}
"""What is allowed, by the type of pydantic's error; other errors say it themselves."""

_LONGEST = 60
"""A longer given text is not repeated."""

_ITEMS = {"claims": "claim", "curves": "curve", "margins": "the margin of"}
"""What one item under a key of the file is called."""


def load_claims(path: Path) -> ClaimsFile:
    """Return the claims of a YAML file.

    Raises:
        SpaceError: the file is missing or not YAML, a key is unknown (the nearest is named), or a value is
            not allowed.
    """
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise SpaceError(f"{path}: given {_kind(content)}; allowed: a mapping such as {EXAMPLE}")
    try:
        return ClaimsFile.model_validate(content)
    except ValidationError as error:
        raise SpaceError(f"{path}: {'; '.join(_explained(error.errors()))}") from None


def _explained(items: Sequence[Any]) -> list[str]:
    """Return what is wrong, a phrase each; what only follows from another fault is left out."""
    meant = {(*item["loc"][:-1], _meant(item)) for item in items if item["type"] == "extra_forbidden"}
    inside = {item["loc"][:depth] for item in items for depth in range(1, len(item["loc"]))}
    told = [
        _explain(item)
        for item in items
        if not (item["type"] == "missing" and item["loc"] in meant)
        # An item that is wrong is not counted: the list seems too short.
        and not (item["type"] == "too_short" and item["loc"] in inside)
    ]
    return list(dict.fromkeys(told))


def _explain(item: Any) -> str:
    """Return one of pydantic's errors as a phrase: where it is, what was given and what is allowed."""
    *above, last = item["loc"]
    if item["type"] == "extra_forbidden":
        return f"{_place(above)}unknown key {last!r}.{did_you_mean(str(last), sorted(_known(above)))}"
    if item["type"] == "missing":
        return f"{_place(above)}there is no {last!r}; it is needed, as in {EXAMPLE}"
    if item["type"] in ("model_type", "model_attributes_type"):
        example = (
            EXAMPLE.partition("[")[2].rstrip("]") if above == ["claims"] else "{row: new, column: acc, x: 1}"
        )
        return f"{_place(item['loc'])}given {_kind(item['input'])}; allowed: a mapping such as {example}"
    allowed = _ALLOWED.get(item["type"], item["msg"])
    return f"{_place(item['loc'])}given {_kind(item['input'])}; allowed: {allowed}"


def _meant(item: Any) -> str | None:
    *above, last = item["loc"]
    return nearest(str(last), sorted(_known(above)))


def _known(above: Sequence[Any]) -> Iterable[str]:
    """Return the keys that are known at a place in the file."""
    model: type[Strict] = ClaimsFile if not above else StatedClaim if above[0] == "claims" else Point
    return model.model_fields


def _place(location: Sequence[Any]) -> str:
    """Return a place in the file as text, with a colon: `claim 2: check: `."""
    if not location:
        return ""
    first, *rest = location
    if not rest:
        return f"{first}: "
    number = rest[0] + 1 if isinstance(rest[0], int) else repr(rest[0])
    # The last part of the place of a wrong `x` is the name of a type.
    inner = [f"point {one + 1}" if isinstance(one, int) else str(one) for one in rest[1:3]]
    return ": ".join([f"{_ITEMS.get(first, first)} {number}", *inner]) + ": "


def _kind(value: Any) -> str:
    """Return a given value as text; of a long one only what it is."""
    if isinstance(value, dict | list | tuple):
        return f"{'a mapping' if isinstance(value, dict) else 'a list'} of {len(value)}"
    text = repr(value)
    return "nothing" if value is None else text if len(text) <= _LONGEST else "a text"
