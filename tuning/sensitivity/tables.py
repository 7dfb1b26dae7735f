"""Every number of a sensitivity analysis as tidy tables: for CSV files, for JSON and for the terminal."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from contrasweep.tuning.files import write_whole
from contrasweep.tuning.reports.page import Table
from contrasweep.tuning.sensitivity.analyse import Sensitivity
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.sections import PARTS
from contrasweep.tuning.sensitivity.sections.part import Part
from contrasweep.tuning.sensitivity.sections.studies import comparison_tables, trials_record

TOO_FEW = "Too few trials to tell"


def sensitivity_tables(found: Sensitivity, parts: Sequence[Part[Any]] = PARTS) -> dict[str, Table]:
    """Return the tables that have rows, by name; the first column of an analysis's table names the study.

    The table `too_few` lists the analyses that need more trials.

    Args:
        found: the analyses.
        parts: how each analysis of a study is shown.
    """
    studies = [(one.observations.study, one) for one in found.studies]
    tables = {"studies": Table.of("Studies", [trials_record(one) for one in found.studies])}
    for part in parts:
        for table in part.tables:
            records = [{"study": s, **record} for s, one in studies for record in part.records(table, one)]
            tables[table.name] = Table.of(table.title, records)
    missing = [
        {
            "study": study,
            "analysis": name,
            "found": lack.found,
            "needed": lack.needed,
            "counted": lack.counted,
        }
        for study, name, lack in too_few(found, parts)
    ]
    tables["too_few"] = Table.of(TOO_FEW, missing)
    tables |= comparison_tables(found)
    return {name: table for name, table in tables.items() if table.rows}


def write_csv(tables: Mapping[str, Table], folder: Path) -> list[Path]:
    """Write each table into `folder` as NAME.csv, with all digits of its numbers."""
    paths = []
    for name, table in tables.items():
        text = io.StringIO(newline="")
        csv.writer(text).writerows([table.columns, *table.rows])
        paths.append(folder / f"{name}.csv")
        write_whole(paths[-1], text.getvalue())
    return paths


def as_records(tables: Mapping[str, Table]) -> dict[str, list[dict[str, object]]]:
    """Return the tables as lists of records, for JSON."""
    return {
        name: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        for name, table in tables.items()
    }


def too_few(found: Sensitivity, parts: Sequence[Part[Any]] = PARTS) -> Iterator[tuple[str, str, TooFew]]:
    """Yield study and name of each analysis with too few trials; those that lack the same count once.

    The comparison of several studies comes last, with their number for a name.
    """
    for one in found.studies:
        listed: list[TooFew] = []
        for part in parts:
            for name, lack in part.lacking(one):
                if not any(lack is other for other in listed):
                    listed.append(lack)
                    yield one.observations.study, name, lack
    if isinstance(found.budgets, TooFew):
        yield f"{len(found.studies)} studies", "equal budgets", found.budgets
