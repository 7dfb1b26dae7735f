"""Runs of one table from several machines in one file: what the file has stays in it and is not run again."""

from collections.abc import Mapping, Set
from dataclasses import replace
from pathlib import Path

from contrasweep.tuning.experiment import default_settings
from contrasweep.tuning.tables.results import (
    RUNS_DONE,
    CellInfo,
    Key,
    TableResults,
    read_results,
    runs_done_of,
)
from contrasweep.tuning.tables.runs import by_cell


def saved_before(planned: TableResults, folder: Path | None) -> TableResults | None:
    """Return what a folder holds of the form of a table that is planned; None if it holds nothing of it.

    Raises:
        InputError: the file was not written by `save_results`.
    """
    path = None if folder is None else folder / f"{planned.name}.parquet"
    return None if path is None or not path.exists() else read_results(path)


def saved_seeds(planned: TableResults, saved: TableResults | None) -> dict[Key, Set[int | None]]:
    """Return the seeds of each planned cell that were saved before and count as done."""
    known = counting(planned, saved)
    runs = {} if known is None else by_cell(known.values)
    return {key: frozenset(own) for key, own in runs.items()}


def counting(planned: TableResults, saved: TableResults | None) -> TableResults | None:
    """Return those of the saved runs that are done: of planned cells, with their settings.

    A searched row is of the search in its own results folder, so none of its runs counts.
    """
    if saved is None or planned.tuned:
        return None
    alike = (planned.cells.keys() & saved.cells.keys()) - _unlike(planned, saved)
    return replace(saved, values=tuple(run for run in saved.values if (run.row, run.column) in alike))


def not_replaced(planned: TableResults, saved: TableResults | None) -> TableResults | None:
    """Return the saved runs without those of other settings, which the plan makes again.

    Cells that cannot be planned here, because their data are elsewhere, keep theirs; so do searched rows.
    """
    if saved is None or planned.tuned:
        return saved
    unlike = _unlike(planned, saved)
    return replace(saved, values=tuple(run for run in saved.values if (run.row, run.column) not in unlike))


def replaced_rows(planned: TableResults, saved: TableResults | None) -> list[str]:
    """Return the names of the rows with saved runs of other settings, which the plan makes again."""
    if saved is None or planned.tuned:
        return []
    unlike = _unlike(planned, saved)
    other = (run.row for run in saved.values if (run.row, run.column) in unlike)
    return [planned.table.row_names.get(row, row) for row in dict.fromkeys(other)]


def joined(found: TableResults, saved: TableResults | None) -> TableResults:
    """Return the results with the runs that were saved before and are not among them.

    Where both have runs of a cell, they are joined if their settings are the same; otherwise those of `found`
    count.
    """
    if saved is None or found.table.run.information is not None:
        return found  # facts of the data come from their file, whole
    here, there = by_cell(found.values), by_cell(saved.values)
    cells, values = dict(found.cells), list(found.values)
    for key, runs in there.items():
        if key not in here:
            cells[key] = saved.cells[key]
        elif not _same(found.cells[key], saved.cells[key]):
            continue
        known = here.get(key, {})
        values += [run for seed, run in runs.items() if seed not in known]
    place = {key: number for number, key in enumerate(_places(found))}
    values.sort(key=lambda run: (place.get((run.row, run.column), len(place)), run.seed or 0))
    seeds = max(found.seeds, saved.seeds)
    whole = replace(found, seeds=seeds, values=tuple(values), cells=cells)
    return replace(whole, gaps=_gaps(whole, saved), provenance=_both(found.provenance, saved.provenance))


def _places(results: TableResults) -> list[Key]:
    """Return the cells in the order in which a table is filled: row by row."""
    run = results.table.run
    return [(row, column) for row in run.rows for column in run.columns]


def _unlike(planned: TableResults, saved: TableResults) -> set[Key]:
    """Return the planned cells that were saved with other settings."""
    shared = planned.cells.keys() & saved.cells.keys()
    return {key for key in shared if not _same(planned.cells[key], saved.cells[key])}


def _same(one: CellInfo, other: CellInfo) -> bool:
    """Whether two cells were run alike; a setting that one does not name has its default there."""
    if (one.dataset, one.method, one.search) != (other.dataset, other.method, other.search):
        return False
    usual = default_settings(one.method, one.dataset)
    first, second = ({**usual, **cell.settings} for cell in (one, other))
    if not (first["data_fingerprint"] and second["data_fingerprint"]):
        second["data_fingerprint"] = first["data_fingerprint"]  # of older runs the images are not known
    return first == second


def _gaps(whole: TableResults, saved: TableResults) -> dict[Key, str]:
    runs = by_cell(whole.values)
    gaps = {}
    for key in dict.fromkeys([*saved.gaps, *whole.gaps]):
        done = len(runs.get(key, ()))
        count = runs_done_of(done, whole.seeds)
        # What went wrong is in the words after the count, here or, where nothing ran here, there.
        told = [RUNS_DONE.sub(count, part[key]) for part in (whole.gaps, saved.gaps) if key in part]
        if not done:
            gaps[key] = next((why for why in told if why != count), count)
        elif done < whole.seeds:
            gaps[key] = next((why for why in told[:1] if why.startswith(count)), count)
    return gaps


def _both(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """Return what each of two machines said of itself, with both answers where they differ."""
    names = [*one, *(name for name in other if name not in one)]
    answers = {name: [part[name] for part in (one, other) if name in part] for name in names}
    return {name: ", ".join(dict.fromkeys(", ".join(told).split(", "))) for name, told in answers.items()}
