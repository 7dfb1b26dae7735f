"""The files of trained encoders in a results folder, and which of a search's are kept."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow.compute as pc

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.results.best import ranked
from contrasweep.tuning.results.commands import final_runs_command
from contrasweep.tuning.results.final_runs import TrialSeed, completed_rows, final_records
from contrasweep.tuning.store import Location, ResultsStore, study_names
from contrasweep.tuning.store.filesystem import ONCE
from contrasweep.tuning.store.layout import encoder_path, encoders_folder, trial_of

log = logging.getLogger(__name__)

KEPT: Final = 1
"""How many trials of a search keep their encoders, unless the user says otherwise."""


def stored_encoders(location: Location, study: str) -> set[str]:
    """Return the paths of the encoder files of a study, below the results folder."""
    return {location.within(info) for info in location.files(encoders_folder(study), below=True)}


def runs_with_encoders(store: ResultsStore, given: str) -> tuple[str, Mapping[TrialSeed, dict[str, Any]]]:
    """Return the study whose encoders stand for a given one, and the rows of its runs that have one.

    Final runs stand for themselves; for a search, the first of its `final_records` with a completed run.
    Where none has completed, these are the trials whose encoders the search has kept.

    Raises:
        InputError: no run has one.
        StoreError: there is no such study.
    """
    record = store.study(given)
    searched = record.searched_study
    for final in [record] if record.is_final else final_records(store, searched):
        if rows := completed_rows(store, final.name):
            return final.name, rows
    if record.is_final:
        raise InputError(f"study {given} has no encoder: none of its runs has completed")
    there = stored_encoders(store.location, searched)
    if there and searched in study_names(store.location):
        # Seeds of a failed trial may have left theirs.
        failed = set(store.trials(searched).filter(pc.field("status") == "failed")["trial"].to_pylist())
        whole = {key: row for key, row in completed_rows(store, searched).items() if key[0] not in failed}
        if found := {key: row for key, row in whole.items() if encoder_path(searched, *key) in there}:
            return searched, found
    run = final_runs_command([searched], store.location.uri)
    raise InputError(
        f"study {searched} has no encoder: the search has kept none, and there is no completed final run. "
        f"`{run}` trains its best configuration"
    )


class KeptEncoders:
    """The encoders of a search: workers write that of each completed trial, and the best ones stay.

    Args:
        location: the results folder.
        study: the study.
        most: of how many trials the encoders are kept.
        merits: the final merits (`results.best`) of the trials that have ended before, one for each metric;
            None of one that is no candidate for the best.
    """

    def __init__(
        self, location: Location, study: str, most: int, merits: Mapping[int, Sequence[float] | None]
    ) -> None:
        # What cannot be deleted now is deleted with the next trial's.
        self._location, self._study, self._most = replace(location, retry=ONCE), study, most
        self._merits = dict(merits)

    def add(self, trial: int, merits: Sequence[float] | None) -> None:
        """Note that a trial has ended, and delete the encoders of trials that are not among the best.

        `merits` are its final ones (`results.best`); without them, the trial is no candidate for the best.
        """
        self._merits[trial] = merits
        self.tidy()

    def tidy(self) -> None:
        """Delete the encoders of trials that have ended and are not among the best.

        A file that cannot be deleted costs room, nothing else: that is a warning.
        """
        if not self._most:
            return
        merits = {trial: own for trial, own in self._merits.items() if own is not None}
        best = ranked(merits)[: self._most]
        ended, folder = self._merits.keys() - set(best), encoders_folder(self._study)
        try:
            for entry in self._location.entries(folder):
                if trial_of(entry.base_name) in ended:
                    self._location.delete_folder(f"{folder}/{entry.base_name}")
        except OSError as error:
            log.warning("Encoders of weaker trials stay in %s: %s", folder, error)
