"""Every number of a sensitivity analysis as tidy tables: for CSV files, for JSON and for the terminal."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contrasweep.tuning.reports.page import Table
from contrasweep.tuning.sensitivity.analyse import Sensitivity, StudySensitivity
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.parts import PARTS
from contrasweep.tuning.sensitivity.sections.part import Part, Row
from contrasweep.tuning.sensitivity.sections.studies import COLUMNS, comparison_tables, trials_row


def sensitivity_tables(found: Sensitivity, parts: Sequence[Part[Any]] = PARTS) -> dict[str, Table]:
    """Return the tables that have rows, by name; the first column of an analysis's table names the study.

    The table `too_few` lists the analyses that need more trials.

    Args:
        found: the analyses.
        parts: how each analysis of a study is shown.
    """
    tables = {"studies": Table("Studies", COLUMNS, [trials_row(one) for one in found.studies])}
    for part in parts:
        for table in part.tables:
            rows = [[one.observations.study, *row] for one in found.studies for row in part.rows(table, one)]
            tables[table.name] = Table(table.title, ("study", *table.columns), rows)
    missing = [[one.observations.study, *row] for one in found.studies for row in _too_few(one, parts)]
    columns = ("study", "analysis", "found", "needed", "of")
    tables["too_few"] = Table("Too few to tell", columns, missing)
    tables |= comparison_tables(found)
    return {name: table for name, table in tables.items() if table.rows}


def write_csv(tables: Mapping[str, Table], folder: Path) -> list[Path]:
    """Write each table into `folder` as NAME.csv, with all digits of its numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, table in tables.items():
        path = folder / f"{name}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(table.columns)
            writer.writerows(table.rows)
        paths.append(path)
    return paths


def as_records(tables: Mapping[str, Table]) -> dict[str, list[dict[str, object]]]:
    """Return the tables as lists of records, for JSON: NaN and infinities become None."""
    return {
        name: [
            {column: _finite(cell) for column, cell in zip(table.columns, row, strict=True)}
            for row in table.rows
        ]
        for name, table in tables.items()
    }


def _finite(cell: object) -> object:
    return None if isinstance(cell, float) and not np.isfinite(cell) else cell


def _too_few(one: StudySensitivity, parts: Sequence[Part[Any]]) -> Iterator[Row]:
    """Yield a row for each analysis with too few trials; analyses that lack the same thing count once."""
    listed: list[TooFew] = []
    for part in parts:
        for name, lack in part.lacking(one):
            if not any(lack is other for other in listed):
                listed.append(lack)
                yield [name, lack.found, lack.needed, lack.what]
