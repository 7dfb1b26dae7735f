"""The results of a table: one value for each (row, column, seed), the settings behind them, and the gaps.

`tables.collect` fills them from the store; here they are written to a small Parquet file and read back.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from contrasweep.search_spaces.tables import Scale, Table, load_table
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.files import written_whole
from contrasweep.tuning.results.commands import table_command

Key = tuple[str, str]

SCHEMA = pa.schema(
    [
        pa.field("row", pa.string(), nullable=False),
        pa.field("column", pa.string(), nullable=False),
        pa.field("seed", pa.int64()),
        pa.field("value", pa.float64(), nullable=False),
        pa.field("untrained", pa.float64()),
        pa.field("seconds", pa.float64()),
        pa.field("study", pa.string(), nullable=False),
        pa.field("trial", pa.int64(), nullable=False),
    ]
)
RUNS_DONE = re.compile(r"^\d+ of \d+ runs done")
"""The beginning of a gap of which something is known, as `runs_done_of` writes it."""

_CONTENT = b"contrasweep.table"


@dataclass(frozen=True)
class RunValue:
    """The score of one run and of its untrained encoder, in printed units.

    `seed` None marks a fact of the data, which needs no run. `seconds` is the wall-clock of the run.
    """

    row: str
    column: str
    seed: int | None
    value: float
    untrained: float | None = None
    seconds: float | None = None
    study: str = ""
    trial: int = 0


@dataclass(frozen=True)
class RowSearch:
    """The search that chose a row's settings.

    `seconds` is the time of all trials, `space` the ranges in words, by parameter (empty in older files).
    """

    study: str
    trials: int
    seconds: float
    space: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CellInfo:
    """How a cell was run: its dataset, all its settings, its selection and the search behind it."""

    dataset: str
    method: str
    settings: Mapping[str, Any]
    selected: str = ""
    search: RowSearch | None = None


@dataclass(frozen=True)
class TableResults:
    """A table's results at one scale.

    Attributes:
        table: the table.
        scale, tuned: which form was run.
        seeds: how many runs of each cell were planned.
        values: what there is.
        cells: how each cell was run.
        gaps: of cells without a value, or with fewer runs than planned: why.
        provenance: versions, host, git revision.
    """

    table: Table
    scale: Scale
    tuned: bool
    seeds: int
    values: tuple[RunValue, ...] = ()
    cells: Mapping[Key, CellInfo] = field(default_factory=dict)
    gaps: Mapping[Key, str] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of its file: the table's id and the form that was run."""
        forms = [*([] if self.scale == "paper" else [self.scale]), *(["tuned"] if self.tuned else [])]
        return ".".join([self.table.id, *forms])

    @property
    def label(self) -> str:
        """The form that was run, in words; it stands wherever the numbers are shown."""
        if self.table.run.information is not None:
            return "facts of the data"
        if self.scale == "released":
            return "the released command's settings"
        if self.scale == "quick":
            return "QUICK, smaller than the paper's" + ("; each row searched" if self.tuned else "")
        form = "each row searched" if self.tuned else "the paper's settings"
        form += " with the same budget" if self.tuned and len(self.budgets) < 2 else ""
        return f"{form}, on other data" if self.on_other_data else form

    def of(self, row: str, column: str) -> dict[int | None, RunValue]:
        """Return the values of a cell by seed."""
        return {v.seed: v for v in self.values if (v.row, v.column) == (row, column)}

    @property
    def on_other_data(self) -> bool:
        """Whether all values were measured on data that stand in for the paper's."""
        columns = [self.table.run.columns.get(column) for column in {value.column for value in self.values}]
        return bool(columns) and all(column is not None and column.other_data for column in columns)

    @property
    def budgets(self) -> tuple[int, ...]:
        """The different numbers of trials of the rows' searches."""
        return tuple(sorted({search.trials for search in self._searches}))

    @property
    def compared(self) -> bool:
        """Whether the numbers are compared with printed ones; those of a quick form are not."""
        return self.scale != "quick"

    @property
    def common_settings(self) -> dict[str, Any]:
        """The settings that all cells share."""
        infos = list(self.cells.values())
        first = dict(infos[0].settings) if infos else {}
        return {
            name: value
            for name, value in first.items()
            if all(name in info.settings and info.settings[name] == value for info in infos)
        }

    @property
    def seconds(self) -> float:
        """The seconds of all final runs together."""
        return sum(self.runs.values())

    @property
    def runs(self) -> dict[tuple[str, int, int], float]:
        """The seconds of each final run, by (study, trial, seed); several columns share a run."""
        return {(v.study, v.trial, v.seed): v.seconds or 0.0 for v in self.values if v.seed is not None}

    @property
    def search_seconds(self) -> float:
        """The seconds of all searches together; a search that rows share counts once."""
        return sum({s.study: s.seconds for s in self._searches}.values())

    @property
    def command(self) -> str:
        """The command that runs this form of the table."""
        usual = (0, self.table.run.seeds_at(self.scale))
        return table_command(
            self.table.id,
            self.scale,
            self.tuned,
            trials=self.budgets[0] if len(self.budgets) == 1 else None,
            seeds=None if self.seeds in usual else self.seeds,
        )

    @property
    def _searches(self) -> list[RowSearch]:
        return [info.search for info in self.cells.values() if info.search is not None]


def runs_done_of(done: int, planned: int) -> str:
    """Return how a gap begins: how many of its planned runs are done."""
    return f"{done} of {planned} runs done"


def without(settings: Mapping[str, Any], common: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are not among the common ones."""
    return {name: value for name, value in settings.items() if name not in common}


def save_results(results: TableResults, folder: Path) -> Path:
    """Write `FOLDER/NAME.parquet` and return its path."""
    common = results.common_settings
    content = {
        "table": results.table.id,
        "scale": results.scale,
        "tuned": results.tuned,
        "seeds": results.seeds,
        "settings": common,
        "cells": [
            {"row": r, "column": c, **asdict(info), "settings": without(info.settings, common)}
            for (r, c), info in results.cells.items()
        ],
        "gaps": [{"row": r, "column": c, "why": why} for (r, c), why in results.gaps.items()],
        "provenance": dict(results.provenance),
    }
    rows = [asdict(value) for value in results.values]
    metadata = {_CONTENT: json.dumps(content, sort_keys=True).encode()}
    path = folder / f"{results.name}.parquet"
    # The file may hold the only copy of another machine's runs: it is replaced whole or not at all.
    with written_whole(path) as file:
        pq.write_table(pa.Table.from_pylist(rows, SCHEMA.with_metadata(metadata)), file)
    return path


def read_results(path: Path) -> TableResults:
    """Return the results in a file of `save_results`.

    Raises:
        InputError: the file was not written by `save_results`, or has another name since: the name says which
            form of which table it holds.
    """
    try:
        table = pq.read_table(path)
        content = json.loads(table.schema.metadata[_CONTENT])
    except (OSError, pa.ArrowInvalid, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} holds no results of a table ({error})") from None
    cells = {}
    for cell in content["cells"]:
        key, search = (cell.pop("row"), cell.pop("column")), cell.pop("search", None)
        settings = {**content["settings"], **cell.pop("settings")}
        cells[key] = CellInfo(**cell, settings=settings, search=RowSearch(**search) if search else None)
    found = TableResults(
        table=load_table(content["table"]),
        scale=content["scale"],
        tuned=content["tuned"],
        seeds=content["seeds"],
        values=tuple(RunValue(**row) for row in table.to_pylist()),
        cells=cells,
        gaps={(gap["row"], gap["column"]): gap["why"] for gap in content["gaps"]},
        provenance=content["provenance"],
    )
    if path.stem != found.name:
        raise InputError(f"{path} holds {found.table.id}, {found.label}; rename it {found.name}.parquet")
    return found
