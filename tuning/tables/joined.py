"""Runs of one table from several machines in one file: what the file has stays in it and is not run again."""

from collections.abc import Mapping, Set
from dataclasses import replace
from pathlib import Path

from contrasweep.tuning.tables.results import CellInfo, Key, TableResults, read_results
from contrasweep.tuning.tables.runs import by_cell


def saved_before(planned: TableResults, folder: Path | None) -> TableResults | None:
    """Return what a folder holds of the form of a table that is planned; None if it holds nothing of it.

    Raises:
        InputError: the file was not written by `save_results`.
    """
    path = None if folder is None else folder / f"{planned.name}.parquet"
    return None if path is None or not path.exists() else read_results(path)


def saved_seeds(planned: TableResults, saved: TableResults | None) -> dict[Key, Set[int]]:
    """Return the seeds of each planned cell that were saved before with the settings of the plan.

    A searched row is of the search in its own results folder, so none of its runs counts.
    """
    if saved is None or planned.tuned:
        return {}
    return {
        key: frozenset(seed for seed in runs if seed is not None)
        for key, runs in by_cell(saved.values).items()
        if key in planned.cells and _same(planned.cells[key], saved.cells[key])
    }


def joined(found: TableResults, saved: TableResults | None) -> TableResults:
    """Return the results with the runs that were saved before and are not among them.

    Where both have runs of a cell, they are joined if their settings are the same; otherwise those of `found`
    count.
    """
    if saved is None:
        return found
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


def _same(one: CellInfo, other: CellInfo) -> bool:
    """Whether two cells were run alike; a setting that is younger than a file has its default there."""
    shared = one.settings.keys() & other.settings.keys()
    settings = all(one.settings[name] == other.settings[name] for name in shared)
    return settings and (one.dataset, one.method, one.search) == (other.dataset, other.method, other.search)


def _gaps(whole: TableResults, saved: TableResults) -> dict[Key, str]:
    runs = by_cell(whole.values)
    gaps = {}
    for key, why in {**saved.gaps, **whole.gaps}.items():
        done = len(runs.get(key, ()))
        if not done:
            gaps[key] = why
        elif done < whole.seeds:
            gaps[key] = f"{done} of {whole.seeds} runs done"
    return gaps


def _both(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """Return what each of two machines said of itself, with both answers where they differ."""
    names = [*one, *(name for name in other if name not in one)]
    answers = {name: [part[name] for part in (one, other) if name in part] for name in names}
    return {name: ", ".join(dict.fromkeys(", ".join(told).split(", "))) for name, told in answers.items()}
