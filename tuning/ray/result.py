"""What a sweep gives back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import overload

from contrasweep.tuning.experiment.statuses import counts_in_words
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.results.selection import SelectedTrial, SelectedTrials, StoredSearch
from contrasweep.tuning.results.study import StudyData, read_study
from contrasweep.tuning.store import ResultsStore, StoreError


@dataclass(frozen=True, repr=False)
class SweepResult:
    """A sweep that has ended: its plan, and how many trials ended in which way.

    `ended_early` says why fewer trials began than were planned; None if all did.
    """

    plan: SweepPlan
    counts: Mapping[str, int]
    ended_early: str | None = None

    def __repr__(self) -> str:
        """Return the study and how many of its trials ended in which way."""
        endings = counts_in_words(self.counts)
        return f"SweepResult({self.plan.name}: {endings}; selected by {self.plan.metric})"

    def _repr_html_(self) -> str | None:
        """Return the best trials as a table, for notebooks; None where the results folder is gone."""
        try:
            return self.data()._repr_html_()
        except StoreError:
            return None

    def data(self) -> StudyData:
        """Return the whole study, with its trials and learning curves, as the store has it now.

        Raises:
            StoreError: the results folder is gone.
        """
        return read_study(ResultsStore(self.plan.results), self.plan.name)

    @overload
    def best(self, top: None = None, where: Sequence[str] = ()) -> SelectedTrial: ...

    @overload
    def best(self, top: int, where: Sequence[str] = ()) -> SelectedTrials: ...

    def best(self, top: int | None = None, where: Sequence[str] = ()) -> SelectedTrial | SelectedTrials:
        """Return the best trial, or with `top` a list of the best ones, for `final_runs`.

        Args:
            top: how many trials.
            where: conditions such as `val.colour_mse>=2000`; a trial that breaks one does not count.

        Raises:
            InputError, SweepFailed: see `results.selection.best_trials`.
        """
        found = self._search.best(1 if top is None else top, where)
        return found[0] if top is None else found

    def trial(self, number: int) -> SelectedTrial:
        """Return a completed trial by its number, such as one that ties with the best, for `final_runs`.

        Raises:
            InputError: see `results.selection.StoredSearch.trial`.
        """
        return self._search.trial(number)

    @property
    def _search(self) -> StoredSearch:
        """The study as the store has it now."""
        return StoredSearch(ResultsStore(self.plan.results), self.plan.name)
