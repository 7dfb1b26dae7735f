"""Which stored runs are older than the settings, or the rows, of their table."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from contrasweep.tuning.experiment import default_settings, flat_settings
from contrasweep.tuning.results.commands import spaces_command
from contrasweep.tuning.tables.collect import search_space
from contrasweep.tuning.tables.plan import plan_table
from contrasweep.tuning.tables.planned import CellPlan
from contrasweep.tuning.tables.results import CellInfo, TableResults


def changed_settings(results: TableResults) -> list[str]:
    """Return the settings that the table has changed since its stored runs, one phrase for each change.

    `contrasweep table` recognises a run by its experiment, so it never shows such a run; a saved file does.
    The dataset and its fingerprint are left out: they depend on which files a machine has. Of a searched
    form, the settings that the search held fixed are compared, and the ranges that it searched.
    """
    if results.table.run.information is not None:
        return []
    plan = plan_table(results.table, scale=results.scale, tune=results.tuned)
    rows: dict[tuple[str, str, str], dict[str, None]] = {}
    for cell in plan.cells:
        info = results.cells.get((cell.row, cell.column)) if results.of(cell.row, cell.column) else None
        if info is not None and cell.experiment is not None:
            changes = [*_changes(info.settings, cell, results.tuned), *_changes_of_search(info, cell)]
            for change in changes:
                rows.setdefault(change, {})[cell.row] = None
    every = {value.row for value in results.values}
    return [
        f"{name.removeprefix('hyperparameters.')} {stored}, now {now}"
        + ("" if set(own) == every else f" ({', '.join(own)})")
        for (name, stored, now), own in rows.items()
    ]


def with_new_rows(results: TableResults) -> TableResults:
    """Return the results with a reason of its own for each cell that the table runs only since."""
    plan = plan_table(results.table, scale=results.scale, tune=results.tuned)
    gaps = dict(results.gaps)
    for cell in plan.cells:
        key = cell.row, cell.column
        # A cell without its data is planned too: its reason names the dataset.
        if cell.experiment is None or key in results.cells or key not in gaps:
            continue
        if gaps[key].partition(":")[0] != cell.experiment.dataset.partition(":")[0]:
            gaps[key] = "not run yet: not among the rows when these runs were made"
    return replace(results, gaps=gaps)


def _changes(stored: Mapping[str, Any], cell: CellPlan, tuned: bool) -> Iterator[tuple[str, str, str]]:
    """Yield each setting with its stored value and the value that the table has now."""
    now = flat_settings(cell.planned.content())
    # A setting that is younger than the runs had its default then.
    usual = default_settings(cell.planned.method, cell.planned.dataset)
    fixed = {path for name in cell.settings for path in (name, f"hyperparameters.{name}")}
    names = fixed & now.keys() if tuned else now.keys() | stored.keys()
    left_out = ("dataset", "data_fingerprint", "seed", "validation.")
    for name in sorted(name for name in names if not name.startswith(left_out)):
        found = (values.get(name, usual.get(name)) for values in (stored, now))
        before, after = ("not set" if value is None else str(value) for value in found)
        if before != after:
            yield name, before, after


def _changes_of_search(info: CellInfo, cell: CellPlan) -> Iterator[tuple[str, str, str]]:
    """Yield each searched parameter with its stored range and the range that the table has now."""
    if info.search is None:
        return
    before, now = info.search.space, search_space(cell).in_words()
    if not before:
        yield "search space", "of an earlier version", f"that of {spaces_command(info.method)}"
        return
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            yield f"search of {name}", before.get(name, "not set"), now.get(name, "not set")
