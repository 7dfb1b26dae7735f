"""`contrasweep verify`: judge claims about a user's own table on its runs."""

from pathlib import Path
from typing import Annotated

import typer

from contrasweep.tuning.cli.errors import FAILED
from contrasweep.tuning.cli.options import AsJson
from contrasweep.tuning.cli.rendering import print_json, say


def verify(
    claims: Annotated[Path, typer.Argument(metavar="CLAIMS.yaml", help="The claims (docs/claims.md).")],
    runs: Annotated[
        Path,
        typer.Argument(
            metavar="RUNS.parquet",
            help="The runs (.parquet or .csv), with the columns row, column, seed, value and, if known, "
            "untrained.",
        ),
    ],
    json: AsJson = False,
) -> None:
    """Judge claims about a table of your own on its runs; exit with 1 if one is contradicted.

    Example: contrasweep verify claims.yaml runs.csv
    """
    from contrasweep.tuning.tables.own_table import read_own_table
    from contrasweep.tuning.tables.verdict_text import verdict_content, verdicts_markdown

    verdicts = read_own_table(claims, runs).verdicts()
    if json:
        print_json({"claims": [verdict_content(verdict) for verdict in verdicts]})
    else:
        say(verdicts_markdown(verdicts))
    if any(verdict.status == "contradicted" for verdict in verdicts):
        raise SystemExit(FAILED)
