"""Claims about anybody's table, read from a YAML file. docs/claims.md shows one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from contrasweep.search_spaces.parameters import SpaceError
from contrasweep.search_spaces.tables import Claim, Strict, explain
from contrasweep.search_spaces.yaml_text import read_yaml

Finite = Annotated[float, Field(allow_inf_nan=False)]
Margin = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class StatedClaim(Strict):
    """A claim: its text, the check that decides it, and the columns that `[:]` stands for (None: all)."""

    text: Annotated[str, Field(min_length=1)]
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


def load_claims(path: Path) -> ClaimsFile:
    """Return the claims of a YAML file.

    Raises:
        SpaceError: the file is missing or not YAML, a key is unknown (the nearest is named), or a value is
            not allowed.
    """
    content = read_yaml(path)
    try:
        return ClaimsFile.model_validate(content)
    except ValidationError as error:
        reasons = "; ".join(explain(item, (ClaimsFile, StatedClaim, Point)) for item in error.errors())
        raise SpaceError(f"{path}: {reasons}") from None
