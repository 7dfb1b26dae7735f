"""Plan a table before it is run: the experiment and the study of each cell, or why the cell does not run."""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from contrasweep.data import DatasetMissing, check_available
from contrasweep.data import data_root as folder_of_data
from contrasweep.search_spaces import preset
from contrasweep.search_spaces.tables import ColumnRun, Form, Override, Scale, Table
from contrasweep.tuning.errors import InputError, unknown_name
from contrasweep.tuning.limits import check_count
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.store import check_study_name, name_before_final
from contrasweep.tuning.tables.planned import DATA, NEVER, RUNS, CellPlan, TablePlan

SCALES: tuple[Scale, ...] = get_args(Scale)

RAMP = "schedule.warmup_epochs"

STUDY_PREFIX = "table-"
"""The names of all studies made for tables begin with this."""


def plan_table(
    table: Table,
    *,
    scale: str = "paper",
    tune: bool = False,
    seeds: int | None = None,
    trials: int | None = None,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    data_root: Path | None = None,
) -> TablePlan:
    """Return the plan of a table.

    Args:
        table: the table.
        scale: `paper`, `quick` or `released`.
        tune: whether to search each row with an equal budget; the settings that define a row stay fixed.
        seeds: the number of final runs of each cell; by default the table's.
        trials: the number of trials of each row's search; by default the table's.
        rows, columns: the rows and the columns to run; by default all. The other cells are planned too, to
            show their stored runs.
        data_root: the folder of the datasets.

    Raises:
        InputError: an unknown scale, row or column, a count below 1, or a form that the table does not have.
    """
    chosen = _check_form(table, scale, tune, {"seeds": seeds, "trials": trials})
    run = table.run
    budget = trials or (run.tune.trials if run.tune is not None else 0)
    cells = tuple(_Planner(table, chosen, tune, data_root).cells())
    _check_chosen("row", table, rows, run.rows, {cell.row for cell in cells})
    _check_chosen("column", table, columns, run.columns, {cell.column for cell in cells})
    seeds = seeds or run.seeds_at(chosen)
    return TablePlan(table, chosen, tune, seeds, budget if tune else 0, cells, tuple(rows), tuple(columns))


def what_it_takes(table: Table) -> str:
    """Return the runs, their lengths and the data of a table with the paper's settings, in words.

    All datasets that a column accepts are named. The answer is the same on every machine.
    """
    planner = _Planner(table, "paper", tuned=False, data_root=None)
    runs: dict[tuple[str, str], int] = {}
    for row, how in table.run.rows.items():
        for column, measured in table.run.columns.items():
            if how.never is None and (not isinstance(how.preset, Mapping) or column in how.preset):
                method, settings = planner.settings(row, measured, column)
                key = f"{method} {sorted(settings.items(), key=str)}"
                runs[key, _with_options(measured.datasets[0], how.data)] = settings["epochs"]
    data = ", ".join(dict.fromkeys(" or ".join(column.datasets) for column in table.run.columns.values()))
    if not runs:
        return f"data of {table.run.information}" if table.run.information else data
    lengths = dict.fromkeys(f"{epochs:,}" for epochs in (min(runs.values()), max(runs.values())))
    return f"{len(runs) * table.run.seeds:,} runs of {' to '.join(lengths)} epochs on {data}"


def _check_form(table: Table, scale: str, tune: bool, counts: Mapping[str, int | None]) -> Scale:
    run, chosen = table.run, next((known for known in SCALES if known == scale), None)
    if chosen is None:
        raise unknown_name("scale", scale, SCALES)
    if lacks_form(table, chosen):
        raise InputError(f"table {table.id} has no {scale} form; --scale paper runs it")
    if tune and run.tune is None:
        raise InputError(f"table {table.id} has no searched form: its rows are what it compares")
    if tune and chosen == "released":
        raise InputError("--tune searches what --scale released fixes: leave one of them out")
    for name, count in counts.items():
        check_count(name, count)
    return chosen


def lacks_form(table: Table, scale: str) -> bool:
    """Return whether a table that can be run has no form of this scale."""
    return scale != "paper" and table.run.form(scale) is None and bool(table.run.columns)


def _check_chosen(
    what: str, table: Table, names: Sequence[str], running: Collection[str], planned: Collection[str]
) -> None:
    """Refuse names of rows or columns that do not run in this form of the table."""
    there = [name for name in running if name in planned]
    for name in names:
        if name in running and name not in there:
            raise InputError(
                f"{what} {name!r} of {table.id} is not in this form; its {what}s are {', '.join(there)}"
            )
        if name not in there:
            raise unknown_name(f"{what} that runs in {table.id}:", name, there)


def own_prefix(table: Table) -> str:
    """Return the beginning of the names of all studies that were made for a table."""
    return f"{STUDY_PREFIX}{table.id}-"


@dataclass
class _Planner:
    """Plans cell by cell; `numbers` holds the trial number of each experiment, by study."""

    table: Table
    scale: Scale
    tuned: bool
    data_root: Path | None
    numbers: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def form(self) -> Form | None:
        return self.table.run.form(self.scale)

    def cells(self) -> list[CellPlan]:
        run = self.table.run
        other = self.tuned or self.scale != "paper"
        columns = [c.key for c in self.table.columns if c.key not in run.columns]
        columns += [key for key, column in run.columns.items() if not (other and column.paper_only)]
        if self.form is not None and self.form.columns:
            columns = [key for key in columns if key in self.form.columns]
        planned = [self._cell(row, column) for row in self.table.row_names for column in columns]
        printed = {(row.key, cell.column) for row in self.table.rows for cell in row.cells}
        return [c for c in planned if (c.row, c.column) in printed or c.column in run.columns]

    def _cell(self, row: str, column: str) -> CellPlan:
        run = self.table.run
        if run.never is not None or column not in run.columns:
            return CellPlan(row, column, NEVER, run.never or "this column is not run here")
        how = run.rows[row]
        without_settings = isinstance(how.preset, Mapping) and column not in how.preset
        if how.never is not None or without_settings:
            return CellPlan(row, column, NEVER, how.never or "there are no settings for this column")
        return self._planned(row, column, run.columns[column])

    def _planned(self, row: str, column: str, measured: ColumnRun) -> CellPlan:
        """Return the plan of a cell; without its data too, because the store may hold its runs."""
        dataset, missing = self._dataset(measured, row)
        method, settings = self.settings(row, measured, column)
        try:
            experiment = resolve(method, dataset, settings, data_root=self.data_root)
        except DatasetMissing:
            return CellPlan(row, column, DATA, missing)
        study = self._study(row, method, dataset)
        known = self.numbers.setdefault(study, {})
        return CellPlan(
            row,
            column,
            DATA if missing else RUNS,
            missing,
            metric=measured.metric,
            control=measured.control or measured.metric,
            scale=measured.scale,
            experiment=experiment,
            study=study,
            trial=known.setdefault(experiment.identity(), len(known)),
            settings=settings,
        )

    def settings(self, row: str, measured: ColumnRun, column: str) -> tuple[str, dict[str, Any]]:
        """Return the method and the settings of a cell.

        What defines the row wins over all but the settings that a form has for this row.
        """
        run, how = self.table.run, self.table.run.rows[row]
        own = how.columns.get(column, Override())
        defines = {**how.defines, **own.defines}
        name = how.preset[column] if isinstance(how.preset, Mapping) else how.preset
        method = how.method or str(name).partition("@")[0]
        if self.tuned:
            assert run.tune is not None, "plan_table has checked it"
            settings = {**run.tune.set, **measured.set}
        else:
            found = _preset(name) if name is not None else {}
            settings = {k: v for k, v in found.items() if k not in how.without}
            settings |= {**how.set, **measured.set, **own.set}
        form = self.form
        if form is None:
            return method, {**settings, **defines}
        changed = {**_share_of_epochs(settings, form), **form.set}
        shorter = {**settings, **_scaled_ramp(settings, changed), **changed}
        return method, {**shorter, **defines, **form.rows.get(row, {})}

    def _dataset(self, measured: ColumnRun, row: str) -> tuple[str, str]:
        """Return the first dataset whose files are here; without one, the first and why it is missing."""
        smaller = {} if self.form is None else self.form.datasets
        own = self.table.run.rows[row].data
        names = [_with_options(smaller.get(name, name), own) for name in measured.datasets]
        reason = ""
        for name in names:
            try:
                check_available(name, self.data_root)
            except DatasetMissing as error:
                # Tables are printed, saved and published: the path of the data root stays out of them.
                root = f"{folder_of_data(self.data_root)}{os.sep}"
                reason = reason or f"{name}: {str(error).partition('. ')[0].replace(root, '')}"
            else:
                return name, ""
        return names[0], reason

    def _study(self, row: str, method: str, dataset: str) -> str:
        forms = [*([] if self.scale == "paper" else [self.scale]), *(["tuned"] if self.tuned else [])]
        what = row if self.tuned else method
        plain = re.sub(r"[^A-Za-z0-9.-]+", "-", "-".join([*forms, what, dataset]))
        return check_study_name(name_before_final(own_prefix(self.table) + plain))


def _with_options(dataset: str, options: str | None) -> str:
    """Return the name of a dataset with more options."""
    if options is None:
        return dataset
    return f"{dataset}{',' if ':' in dataset else ':'}{options}"


def _share_of_epochs(settings: Mapping[str, Any], form: Form) -> dict[str, int]:
    """Return the epochs of a run that a form shortens to a share of them."""
    return (
        {} if form.epochs_share is None else {"epochs": max(1, round(settings["epochs"] * form.epochs_share))}
    )


def _scaled_ramp(settings: Mapping[str, Any], form: Mapping[str, Any]) -> dict[str, float]:
    """Return the ramp of a run that a form shortens: as long a share of the epochs as before."""
    ramp, before = settings.get(RAMP, 0.0), settings.get("epochs")
    if not ramp or before is None or form.get("epochs", before) >= before:
        return {}
    return {RAMP: ramp * form["epochs"] / before}


def _preset(name: str) -> Mapping[str, Any]:
    method, _, dataset = name.partition("@")
    found = preset(method, dataset)
    if found is None:
        raise InputError(f"a table names preset {name}, which does not exist")
    return found["settings"]


def needed_data(plan: TablePlan) -> tuple[list[str], list[str]]:
    """Return the datasets that a table's cells use, and those that are missing here."""
    taken = dict.fromkeys(cell.planned.dataset for cell in plan.running)
    missing = dict.fromkeys(cell.why.partition(": ")[0] for cell in plan.cells if cell.state == DATA)
    return list(taken), list(missing)
