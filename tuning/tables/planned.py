"""The plan of a table: what each cell runs, or why it does not run. `tables.plan` makes it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from contrasweep.search_spaces.tables import Scale, Table
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.planning.best_config import BestConfig

NEVER = "cannot run"
DATA = "data missing"
RUNS = "runs here"


@dataclass(frozen=True)
class CellPlan:
    """The plan of one cell: the experiment that is run for it, or why none is run.

    Attributes:
        row, column: keys of the table.
        state: `runs here`, `data missing` (the files exist, but not on this machine) or `cannot run`.
        why: why the cell does not run; empty where it runs.
        metric, control: the test scores of the trained and of the untrained encoder, by name.
        scale: the factor from our unit to the printed unit.
        experiment: the experiment; in a tuned table, with its settings before the search. A cell without its
            data has one too, unless only the data say what it is.
        study, trial: the name and the number under which the store holds the runs (without `-final`).
        settings: what the table sets; a search of the row holds them fixed.
    """

    row: str
    column: str
    state: str
    why: str = ""
    metric: str = ""
    control: str = ""
    scale: float = 1.0
    experiment: Experiment | None = None
    study: str = ""
    trial: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def planned(self) -> Experiment:
        """The experiment of a cell that has one."""
        assert self.experiment is not None, "the cell runs"
        return self.experiment

    @property
    def config(self) -> BestConfig:
        """The configuration of the cell's final runs."""
        return BestConfig(self.study, self.trial, self.planned.hyperparameters, self.planned)


@dataclass(frozen=True)
class TablePlan:
    """All cells of a table at one scale.

    Attributes:
        table: the table.
        scale: `paper`, or the form that the table's `run.quick` or `run.released` describes.
        tuned: whether each row is searched instead of taking the paper's values.
        seeds: the number of final runs of each cell.
        trials: the number of trials of each row's search; 0 where nothing is searched.
        cells: all cells, row by row.
        rows, columns: the rows and the columns to run; empty for all.
    """

    table: Table
    scale: Scale
    tuned: bool
    seeds: int
    trials: int
    cells: tuple[CellPlan, ...]
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    def asks_for(self, row: str, column: str) -> bool:
        """Return whether a cell is among those to run."""
        return (not self.rows or row in self.rows) and (not self.columns or column in self.columns)

    @property
    def chosen(self) -> tuple[CellPlan, ...]:
        """The cells of the rows and columns to run."""
        return tuple(cell for cell in self.cells if self.asks_for(cell.row, cell.column))

    @property
    def running(self) -> tuple[CellPlan, ...]:
        """The cells that can be run here."""
        return tuple(cell for cell in self.cells if cell.state == RUNS)

    @property
    def studies(self) -> dict[str, list[CellPlan]]:
        """The chosen cells that run, by study; cells with the same experiment share a trial."""
        found: dict[str, dict[int, CellPlan]] = {}
        for cell in self.running:
            if self.asks_for(cell.row, cell.column):
                found.setdefault(cell.study, {}).setdefault(cell.trial, cell)
        return {study: list(trials.values()) for study, trials in found.items()}

    def known_seeds(self, cell: CellPlan, known: Mapping[tuple[str, str], Iterable[int | None]]) -> set[int]:
        """Return which planned seeds of a cell are known in all chosen cells that read the same runs.

        Args:
            cell: the cell.
            known: the seeds with a score, by row and column.
        """
        sharing = [
            known.get((one.row, one.column), ())
            for one in self.running
            if (one.study, one.trial) == (cell.study, cell.trial) and self.asks_for(one.row, one.column)
        ]
        return set(self.seeds_of(cell.planned)).intersection(*sharing)

    @property
    def runs(self) -> int:
        """The number of final runs that the table takes."""
        return self.seeds * sum(len(cells) for cells in self.studies.values())

    def seeds_of(self, experiment: Experiment) -> range:
        """Return the seeds of a cell's final runs; those of its trials are left to the search."""
        searched = experiment.validation.rounds if self.tuned else 1
        return range(experiment.seed + searched, experiment.seed + searched + self.seeds)

    @property
    def seconds(self) -> float | None:
        """The seconds of all runs on one core, from the table's measured cost of an epoch.

        A search counts as if no trial were stopped early. None where a cost is unknown or nothing runs here.
        """
        total, cells = 0.0, [cell for own in self.studies.values() for cell in own]
        for cell in cells:
            cost = self.table.run.seconds_per_epoch.get(cell.planned.dataset)
            if cost is None:
                return None
            searched = self.trials * cell.planned.validation.rounds
            total += cost * cell.planned.epochs * (self.seeds + searched)
        return total if cells else None

    @property
    def state(self) -> str:
        """Whether the whole table, a part or nothing of it can be run here, in words."""
        states = {cell.state for cell in self.chosen}
        if RUNS in states:
            return RUNS if states == {RUNS} else "partly here"
        return DATA if DATA in states else NEVER
