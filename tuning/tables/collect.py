"""Collect the results of a planned table from the store, and facts of the data from their files."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from contrasweep.data import InformationCurve, load_clusterings
from contrasweep.search_spaces.tables import load_table
from contrasweep.tuning.errors import InputError, SweepFailed
from contrasweep.tuning.experiment import flat_settings
from contrasweep.tuning.results.selection import RULE, SelectedTrial, best_trials
from contrasweep.tuning.store import FINAL_SUFFIX, ResultsStore
from contrasweep.tuning.tables.checks import tables_read
from contrasweep.tuning.tables.plan import RUNS, CellPlan, TablePlan, own_prefix, plan_table
from contrasweep.tuning.tables.results import CellInfo, Key, RowSearch, RunValue, TableResults
from contrasweep.tuning.tables.reuse import (
    HeldRun,
    RunKey,
    completed_runs,
    final_rows,
    identity_of_final,
    search_held,
)

INFORMATION_CURVES = ("I(Z;T)", "H(Z|T)", "-H(Z|T)", "clusters")
"""The values kept for each number k of attributes: three curves in bits, and the number of clusters."""


@dataclass(frozen=True)
class StoredRuns:
    """The final runs of all tables in a results folder. They are read once."""

    store: ResultsStore

    @cached_property
    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """The rows of the final runs of tables, by the name of the study without `-final`."""
        return final_rows(self.store)

    @cached_property
    def completed(self) -> dict[RunKey, list[HeldRun]]:
        """The completed runs, by experiment and seed."""
        return completed_runs(self.rows)


def collect(plan: TablePlan, runs: StoredRuns, data_root: Path | None = None) -> TableResults:
    """Return the stored results of a planned table; a cell without all its runs is a gap.

    A run is recognised by its experiment and its seed, whichever table it was made for.

    Raises:
        DatasetMissing: the table is a figure of clusterings, and their file is not in place.
    """
    table = plan.table
    if table.run.information is not None:
        return TableResults(
            table, plan.scale, plan.tuned, 0, information_values(table.run.information, data_root)
        )
    reader = _Reader(plan, runs, data_root)
    gaps: dict[Key, str] = {(cell.row, cell.column): cell.why for cell in plan.cells if cell.why}
    values: list[RunValue] = []
    cells: dict[Key, CellInfo] = {}
    for cell in plan.planned:
        key = cell.row, cell.column
        found, info, reason = reader.cell(cell)
        values += found
        if found or cell.state == RUNS:
            cells[key] = info
        if len(found) == plan.seeds:
            gaps.pop(key, None)
        elif found or cell.state == RUNS:
            gaps[key] = reason or f"{len(found)} of {plan.seeds} runs done"
    return TableResults(
        table, plan.scale, plan.tuned, plan.seeds, tuple(values), cells, gaps, reader.provenance
    )


def collect_others(
    plan: TablePlan, runs: StoredRuns, data_root: Path | None = None
) -> dict[str, TableResults]:
    """Return the results of the tables that a table's claims read, in the same form, by id.

    A table without that form is left out: its cells were not measured.
    """
    found = {}
    for name in tables_read(plan.table.claims):
        try:
            other = plan_table(load_table(name), scale=plan.scale, tune=plan.tuned, data_root=data_root)
        except InputError:
            continue
        found[name] = collect(other, runs, data_root)
    return found


def runs_done(plan: TablePlan, runs: StoredRuns) -> int:
    """Return the number of final runs in the store, of those that can be run here."""
    found = collect(plan, runs)
    here = {(cell.row, cell.column) for cell in plan.running}
    return len({(v.study, v.trial, v.seed) for v in found.values if (v.row, v.column) in here})


@dataclass
class _Reader:
    """Finds a plan's runs among those of all tables."""

    plan: TablePlan
    runs: StoredRuns
    data_root: Path | None
    sources: dict[str, dict[str, str]] = field(default_factory=dict)
    searches: dict[str, SelectedTrial | None] = field(default_factory=dict)
    made: dict[str, RowSearch] = field(default_factory=dict)

    def cell(self, cell: CellPlan) -> tuple[list[RunValue], CellInfo, str]:
        """Return the values of a cell, how it was run, and what went wrong (empty: nothing)."""
        assert cell.experiment is not None, "the cell runs"
        experiment, study, trial, selected, search = cell.experiment, cell.study, cell.trial, "", None
        best = self._searched(cell) if self.plan.tuned else None
        if best is not None:
            experiment, study, trial = best.experiment, best.study, best.trial
            search = self._search_of(study)
            selected = f"{RULE.format(metric=best.metric)} of {search.trials}"
        # Final runs train on all training images, each with its own seed.
        own = {k: v for k, v in experiment.content().items() if k not in ("seed", "validation")}
        settings = flat_settings(own)
        info = CellInfo(experiment.dataset, experiment.method, settings, selected, search)
        identity, seeds = identity_of_final(experiment), self.plan.seeds_of(experiment)
        found = [self._chosen(self.runs.completed.get((identity, seed), [])) for seed in seeds]
        scored = [_value(cell, run) for run in found if run is not None]
        values = [value for value in scored if value is not None]
        there = [row for row in self.runs.rows.get(study, []) if row["trial"] == trial]
        wrong = self._wrong([row for row in there if row["seed"] in seeds], identity, len(values))
        return values, info, wrong

    def _chosen(self, held: list[HeldRun]) -> HeldRun | None:
        """Return the table's own run where there is one, else another table's."""
        if not held:
            return None
        own = (run for run in held if run.study.startswith(own_prefix(self.plan.table)))
        chosen = next(own, held[0])
        if chosen.study not in self.sources:
            self.sources[chosen.study] = self._source(chosen.study)
        return chosen

    def _wrong(self, rows: list[dict[str, Any]], identity: str, done: int) -> str:
        if any(row["status"] == "completed" and row["config"] != identity for row in rows):
            return "the store holds runs with other settings under this name: use another results folder"
        failed = [row for row in rows if row["status"] == "failed"]
        if failed:
            # The errors of some libraries end in lines of advice; the first line names the error.
            reason = str(failed[0]["error"]).strip().partition("\n")[0]
            return f"{done} of {self.plan.seeds} runs done, {len(failed)} failed: {reason}"
        return ""

    def _searched(self, cell: CellPlan) -> SelectedTrial | None:
        """Return the trial that the search of a cell's row selected; the columns of a row share it."""
        if cell.study not in self.searches:
            self.searches[cell.study] = self._selected(cell)
        return self.searches[cell.study]

    def _selected(self, cell: CellPlan) -> SelectedTrial | None:
        study = search_held(self.plan, cell, self.runs.store, self.data_root)
        if study is None:
            return None
        try:
            return best_trials(self.runs.store, study)[0]
        except SweepFailed:
            return None

    def _search_of(self, study: str) -> RowSearch:
        """Return a search as it was made; its budget may differ from the plan's."""
        if study not in self.made:
            store = self.runs.store
            seconds = sum(row["seconds"] or 0.0 for row in store.trials(study).to_pylist())
            self.made[study] = RowSearch(study, store.study(study).require_search().trials, seconds)
        return self.made[study]

    def _source(self, study: str) -> dict[str, str]:
        record = self.runs.store.study(study + FINAL_SUFFIX)
        return {
            "contrasweep": record.versions.get("contrasweep", "unknown"),
            "torch": record.versions.get("torch", "unknown"),
            "git": record.git_revision or "unknown",
            "device": ", ".join(sorted({str(row["device"]) for row in self.runs.rows[study]})),
        }

    @property
    def provenance(self) -> dict[str, str]:
        """The versions and devices behind the values; where studies differ, all of them."""
        names = dict.fromkeys(name for source in self.sources.values() for name in source)
        return {n: ", ".join(sorted({s[n] for s in self.sources.values()})) for n in names}


def _value(cell: CellPlan, run: HeldRun) -> RunValue | None:
    found = run.row.get(f"metric.test.{cell.metric}")
    if found is None:
        return None
    control = run.row.get(f"metric.test.untrained_{cell.control}")
    return RunValue(
        cell.row,
        cell.column,
        run.row["seed"],
        cell.scale * found,
        None if control is None else cell.scale * control,
        run.row["seconds"],
        run.study,
        run.row["trial"],
    )


def information_values(clusterings: str, data_root: Path | None = None) -> tuple[RunValue, ...]:
    """Return the curves of a set of clusterings; `kK` is the row and the name of the curve the column.

    Raises:
        DatasetMissing: the file of the clusterings is not in place.
    """
    curve = load_clusterings(clusterings, data_root).curve()
    heights: Iterable[tuple[str, Iterable[float]]] = zip(
        INFORMATION_CURVES,
        (
            curve.information,
            curve.conditional_entropy,
            [-entropy for entropy in curve.conditional_entropy],
            map(float, curve.clusters),
        ),
        strict=True,
    )
    return tuple(
        RunValue(f"k{k}", name, None, height, study=clusterings)
        for name, values in heights
        for k, height in zip(curve.ks, values, strict=True)
    )


def information_of(results: TableResults) -> InformationCurve:
    """Return the curves that a table's results hold."""
    heights: dict[str, dict[int, float]] = {}
    for value in results.values:
        heights.setdefault(value.column, {})[int(value.row.removeprefix("k"))] = value.value
    ks = sorted(heights[INFORMATION_CURVES[0]])
    information, entropy, _, clusters = (tuple(heights[name][k] for k in ks) for name in INFORMATION_CURVES)
    return InformationCurve(tuple(ks), tuple(map(int, clusters)), information, entropy)
