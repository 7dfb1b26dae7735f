"""Tell which settings of a table have changed since its stored runs were made.

`contrasweep table` recognises a run by its experiment, so it never shows such a run. A saved file of scores
does not know of later changes: the page that shows it has to say them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from contrasweep.tuning.experiment import flat_settings
from contrasweep.tuning.tables.plan import CellPlan, plan_table
from contrasweep.tuning.tables.results import TableResults

Change = tuple[str, str, str]
"""A setting, its stored value and the value that the table has now."""


def changed_settings(results: TableResults) -> list[str]:
    """Return the settings whose value the table has changed since, one phrase for each change.

    The dataset is left out: it depends on which files a machine has. Of a searched form, only the settings
    that the search held fixed are compared.
    """
    if results.table.run.information is not None:
        return []
    plan = plan_table(results.table, scale=results.scale, tune=results.tuned)
    rows: dict[Change, dict[str, None]] = {}
    for cell in plan.cells:
        info = results.cells.get((cell.row, cell.column))
        if info is not None and cell.experiment is not None:
            for change in _changes(info.settings, cell, results.tuned):
                rows.setdefault(change, {})[cell.row] = None
    every = {row for row, _ in results.cells}
    return [
        f"{name.removeprefix('hyperparameters.')} {stored}, now {now}"
        + ("" if set(own) == every else f" ({', '.join(own)})")
        for (name, stored, now), own in rows.items()
    ]


def _changes(stored: Mapping[str, Any], cell: CellPlan, tuned: bool) -> Iterator[Change]:
    now = flat_settings(cell.planned.content())
    fixed = {path for name in cell.settings for path in (name, f"hyperparameters.{name}")}
    names = fixed & now.keys() if tuned else now.keys() | stored.keys()
    for name in sorted(names - {"dataset", "seed", "validation.fraction", "validation.seed"}):
        before, after = (_plain(values.get(name)) for values in (stored, now))
        if before != after:
            yield name, before, after


def _plain(value: Any) -> str:
    return "not set" if value is None else str(value)
