"""A table's results from the store: which of its planned runs are there, and what they gave."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuning.analysis.selection import RULE, best_trials
from tuning.config import flat_settings
from tuning.errors import SweepFailed
from tuning.plan import FINAL_SUFFIX
from tuning.reproduction.information import information_values
from tuning.reproduction.plan import CellPlan, TablePlan
from tuning.reproduction.results import CellInfo, Key, RunValue, TableResults
from tuning.store import ResultsStore, study_names


def collect(plan: TablePlan, store: ResultsStore, data_root: Path | None = None) -> TableResults:
    """Return what the store holds of a planned table; a cell whose runs are not all there is a gap.

    Raises:
        DatasetMissing: the figure is of clusterings whose file is not in place.
    """
    table = plan.table
    if table.run.information is not None:
        return TableResults(
            table, plan.scale, plan.tuned, 0, information_values(table.run.information, data_root)
        )
    reader = _Reader(plan, store)
    gaps: dict[Key, str] = {(cell.row, cell.column): cell.why for cell in plan.cells if cell.why}
    values: list[RunValue] = []
    cells: dict[Key, CellInfo] = {}
    for cell in plan.running:
        key = cell.row, cell.column
        found, cells[key], reason = reader.cell(cell)
        values += found
        if len(found) < plan.seeds:
            gaps[key] = reason or f"{len(found)} of {plan.seeds} runs done"
    return TableResults(
        table, plan.scale, plan.tuned, plan.seeds, tuple(values), cells, gaps, reader.provenance
    )


def runs_done(plan: TablePlan, store: ResultsStore) -> int:
    """Return how many of a table's planned final runs the store holds."""
    if not any(study + FINAL_SUFFIX in study_names(store.location) for study in plan.studies):
        return 0
    once = {(value.study, value.trial, value.seed) for value in collect(plan, store).values}
    return len(once)


@dataclass
class _Reader:
    """Reads the studies of a plan, each once."""

    plan: TablePlan
    store: ResultsStore
    provenance: dict[str, str] = field(default_factory=dict)
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    names: list[str] | None = None

    def cell(self, cell: CellPlan) -> tuple[list[RunValue], CellInfo, str]:
        """Return the values of a cell, how it was run, and what went wrong."""
        assert cell.experiment is not None, "the cell runs"
        experiment, trial, selected = cell.experiment, cell.trial, ""
        if self.plan.tuned:
            best = self._searched(cell)
            if best is not None:
                experiment, trial = best.experiment, best.trial
                selected = f"{RULE.format(metric=best.metric)} of {self.plan.trials}"
        # Final runs take all training images, and their seed is their own.
        own = {k: v for k, v in experiment.content().items() if k not in ("seed", "validation")}
        settings = flat_settings(own)
        info = CellInfo(experiment.dataset, experiment.method, settings, selected)
        rows = [row for row in self._final(cell.study) if row["trial"] == trial]
        seeds = range(experiment.seed + 1, experiment.seed + 1 + self.plan.seeds)
        identity = experiment.with_values({"validation.fraction": 0.0}).identity()
        done = [r for r in rows if r["status"] == "completed" and r["seed"] in seeds]
        same = [row for row in done if row["config"] == identity]
        values = [_value(cell, row) for row in same]
        return [value for value in values if value is not None], info, self._wrong(rows, done, same)

    def _wrong(self, rows: list[dict[str, Any]], done: list[Any], same: list[Any]) -> str:
        if len(done) > len(same):
            return "the store holds runs with other settings under this name: use another results folder"
        failed = [row for row in rows if row["status"] == "failed"]
        if failed:
            return f"{len(same)} of {self.plan.seeds} runs done, {len(failed)} failed: {failed[0]['error']}"
        return ""

    def _searched(self, cell: CellPlan) -> Any:
        if cell.study not in self._names():
            return None
        try:
            return best_trials(self.store, cell.study)[0]
        except SweepFailed:
            return None

    def _final(self, study: str) -> list[dict[str, Any]]:
        name = study + FINAL_SUFFIX
        if name not in self._names():
            return []
        if name not in self.rows:
            record = self.store.study(name)
            self.rows[name] = self.store.trials(name).to_pylist()
            versions = record.versions
            self.provenance |= {
                "contrasweep": versions.get("contrasweep", "unknown"),
                "torch": versions.get("torch", "unknown"),
                "git": record.git_revision or "unknown",
                "device": ", ".join(sorted({str(row["device"]) for row in self.rows[name]})),
            }
        return self.rows[name]

    def _names(self) -> list[str]:
        if self.names is None:
            self.names = study_names(self.store.location)
        return self.names


def _value(cell: CellPlan, row: Mapping[str, Any]) -> RunValue | None:
    found = row.get(f"metric.test.{cell.metric}")
    if found is None:
        return None
    control = row.get(f"metric.test.untrained_{cell.control}")
    return RunValue(
        cell.row,
        cell.column,
        row["seed"],
        cell.scale * found,
        None if control is None else cell.scale * control,
        row["seconds"],
        cell.study,
        row["trial"],
    )
