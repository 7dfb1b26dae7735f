"""What is known of a planned table: its runs in the results store, and those saved in a file."""

from collections.abc import Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from contrasweep.tuning.errors import SweepFailed
from contrasweep.tuning.store import ResultsStore
from contrasweep.tuning.tables.collect import StoredRuns, collect, collect_others
from contrasweep.tuning.tables.merge_saved import (
    joined,
    not_replaced,
    replaced_rows,
    saved_before,
    saved_seeds,
)
from contrasweep.tuning.tables.planned import TablePlan
from contrasweep.tuning.tables.remaining import Remaining, remaining
from contrasweep.tuning.tables.results import Key, TableResults
from contrasweep.tuning.tables.verdict import Verdict, judge_all


@dataclass(frozen=True)
class TableState:
    """What is known of a planned table. The store is read once: what later runs write is not seen.

    Attributes:
        plan: the table.
        results: the results folder.
        saved: what the file in `folder` has of this form of the table; None where there is no file.
        folder: the folder of saved tables, such as docs/reproduction/results; None for none.
        data_root: the folder of the datasets.
    """

    plan: TablePlan
    results: str | Path
    saved: TableResults | None
    folder: Path | None
    data_root: Path | None

    @classmethod
    def of(
        cls, plan: TablePlan, results: str | Path, folder: Path | None = None, data_root: Path | None = None
    ) -> "TableState":
        """Return what is known of a table.

        Raises:
            InputError: the file in the folder was not written by `save_results`.
        """
        planned = TableResults(plan.table, plan.scale, plan.tuned, plan.seeds)
        return cls(plan, results, saved_before(planned, folder), folder, data_root)

    @cached_property
    def runs(self) -> StoredRuns:
        """The final runs of all tables in the store.

        Raises:
            StoreError: the results folder cannot be opened.
        """
        return StoredRuns(ResultsStore(self.results))

    @cached_property
    def stored(self) -> TableResults:
        """The results in the store."""
        return collect(self.plan, self.runs, self.data_root)

    @cached_property
    def shown(self) -> TableResults:
        """The results that count: those of the store, and saved ones with the settings of the plan."""
        return joined(self.stored, not_replaced(self.stored, self.saved))

    @property
    def kept(self) -> TableResults:
        """The results that the file is to have: those of the store, and all saved ones besides."""
        return joined(self.stored, self.saved)

    @property
    def replaced_rows(self) -> list[str]:
        """The names of the rows whose saved runs have other settings than the plan."""
        return replaced_rows(self.stored, self.saved)

    @property
    def saved_seeds(self) -> dict[Key, Set[int | None]]:
        """The seeds of each cell whose scores are saved: `run_table` leaves them out."""
        return saved_seeds(self.stored, self.saved)

    @property
    def remaining(self) -> Remaining:
        """What is left to run."""
        return remaining(self.plan, self.stored, self.saved)

    def verdicts(self) -> list[Verdict]:
        """Judge the claims of the table; they may read other tables of the same form, stored or saved."""
        others = {}
        for name, other in collect_others(self.plan, self.runs, self.data_root).items():
            others[name] = joined(other, not_replaced(other, saved_before(other, self.folder)))
        return judge_all(self.shown, others)

    def refuse_nothing(self) -> None:
        """Raise SweepFailed if no run of what the plan asks for gave a number."""
        plan, found = self.plan, self.shown
        if not any(plan.asks_for(value.row, value.column) for value in found.values):
            gaps = dict.fromkeys(why for cell, why in found.gaps.items() if plan.asks_for(*cell))
            raise SweepFailed(
                f"nothing of table {plan.table.id} was measured: {'; '.join(gaps) or plan.state}"
            )
