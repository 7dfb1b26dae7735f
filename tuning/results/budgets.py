"""What studies that are compared were given: a larger budget may win by its size."""

from collections.abc import Sequence

from contrasweep.names import counted
from contrasweep.tuning.store import StudyRecord


def budget_line(searched: Sequence[StudyRecord]) -> str:
    """Return a sentence that states the budgets of searches and whether they are equal."""
    budgets = {(_budget(record), record.require_search().scheduler) for record in searched}
    if len(budgets) == 1:
        budget, scheduler = budgets.pop()
        return f"Equal budgets: {budget} each, scheduler {scheduler}."
    each = "; ".join(f"{record.name} {_budget(record)}" for record in searched)
    return f"The budgets differ, so a larger one may have won by its size: {each}."


def _budget(record: StudyRecord) -> str:
    seeds = f" with {record.seeds} seeds" if record.seeds > 1 else ""
    epochs = counted(record.experiment.epochs, "epoch")
    return f"{counted(record.require_search().trials, 'trial')}{seeds} of at most {epochs}"
