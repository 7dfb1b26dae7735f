"""The runs that a planned table still lacks, and their cost."""

from collections.abc import Mapping
from dataclasses import dataclass

from contrasweep.tuning.durations import in_one_unit
from contrasweep.tuning.tables.merge_saved import counting, joined
from contrasweep.tuning.tables.planned import CellPlan, TablePlan
from contrasweep.tuning.tables.results import TableResults
from contrasweep.tuning.tables.runs import by_cell


@dataclass(frozen=True)
class Remaining:
    """The final runs of a plan that are known, and those that are missing.

    Attributes:
        stored, missing: how many; those that were saved count as stored.
        seconds: what is missing one after the other, searches included; None where the cost of an epoch is
            unknown.
        timed_on: the devices of the stored runs whose time is taken, as in `cpu, cuda`; empty where the table
            states the cost of an epoch, on one core.
    """

    stored: int
    missing: int
    seconds: float | None
    timed_on: str

    @property
    def in_words(self) -> str:
        """How many are here and missing, and what the missing ones cost."""
        counts = f"{self.stored} here, {self.missing} missing"
        if not self.missing:
            return counts
        cost = cost_in_words(self.seconds)
        if self.timed_on in ("", "cpu"):
            timed = ", by the time that stored runs took" if self.timed_on else ""
            return f"{counts}; cost on one core: {cost}{timed}"
        timed = f"by the time that stored runs took on {self.timed_on}"
        return f"{counts}; cost, one after the other: {cost}, {timed}"


def cost_in_words(seconds: float | None) -> str:
    """Return the time that runs take on one core; `not measured` where that of an epoch is unknown."""
    return "not measured" if seconds is None else in_one_unit(seconds)


def remaining(plan: TablePlan, found: TableResults, saved: TableResults | None = None) -> Remaining:
    """Return what is left of a plan; `found` are its stored results, `saved` those of the folder of `--save`.

    A search counts as if no trial were stopped early, and as a whole unless the store holds it.
    """
    whole = joined(found, counting(found, saved))
    timed = _epoch_seconds(plan, whole)
    known = {**timed, **plan.table.run.seconds_per_epoch}
    runs = by_cell(whole.values)
    cells = [(cell, len(plan.known_seeds(cell, runs))) for own in plan.studies.values() for cell in own]
    stored = sum(done for _, done in cells)
    left = [(cell, _epochs_left(plan, cell, done, whole)) for cell, done in cells]
    waiting = {cell.planned.dataset for cell, epochs in left if epochs}
    seconds = None
    if waiting <= known.keys():
        seconds = sum(known[cell.planned.dataset] * epochs for cell, epochs in left if epochs)
    by_runs = seconds is not None and not waiting <= plan.table.run.seconds_per_epoch.keys()
    timed_on = whole.provenance.get("device", "cpu") if by_runs else ""
    return Remaining(stored, plan.runs - stored, seconds, timed_on)


def _epochs_left(plan: TablePlan, cell: CellPlan, done: int, found: TableResults) -> int:
    """Return the epochs that the missing final runs of a cell take, and its search."""
    search = found.cells[cell.row, cell.column].search
    held = 0 if search is None else search.trials
    trials = max(0, plan.trials - held) * cell.planned.validation.rounds
    return cell.planned.epochs * (plan.seeds - done + trials)


def _epoch_seconds(plan: TablePlan, found: TableResults) -> Mapping[str, float]:
    """Return the mean seconds of an epoch in the stored runs of a table, by dataset."""
    cells = {(cell.row, cell.column): cell for cell in plan.cells if cell.experiment is not None}
    timed: dict[str, dict[tuple[str, int, int | None], tuple[float, int]]] = {}
    for value in found.values:
        if value.seconds:
            planned = cells[value.row, value.column].planned
            # Columns share a run, which counts once.
            run = value.study, value.trial, value.seed
            timed.setdefault(planned.dataset, {})[run] = value.seconds, planned.epochs
    return {
        dataset: sum(seconds for seconds, _ in runs.values()) / sum(epochs for _, epochs in runs.values())
        for dataset, runs in timed.items()
    }
