"""The encoder that is exported: the file that a user names, or that of a study's run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from contrasweep.given_files import read_given
from contrasweep.models.export import EncoderFile, read_encoder
from contrasweep.tuning.errors import InputError, SweepFailed, told_to_user
from contrasweep.tuning.experiment import Experiment, experiment_in_file
from contrasweep.tuning.export.checks import is_encoder_file
from contrasweep.tuning.results.encoders import runs_with_encoders
from contrasweep.tuning.results.final_runs import (
    FinalSummary,
    TrialSeed,
    is_of_earlier_search,
    summarise_runs,
)
from contrasweep.tuning.results.selection import best_trials
from contrasweep.tuning.statistics import Summary
from contrasweep.tuning.store import ResultsStore, StoreError, StudyRecord
from contrasweep.tuning.store.layout import encoder_path, snapshot_epoch
from contrasweep.tuning.store.schema import METRIC, cells_under

_VALIDATION, _TEST = f"{METRIC}val.", f"{METRIC}test."


@dataclass(frozen=True)
class Run:
    """The run that trained an encoder, and its scores.

    Attributes:
        study: the study that holds it.
        trial: the trial of the search whose configuration it has.
        seed: the run's seed.
        final: whether it is a final run, scored on the test split; a trial of a search is scored on the
            validation split by which it was chosen.
        scores: the run's own scores by name.
        over_seeds: of final runs, the configuration's scores over all seeds; empty for a trial.
        untrained: the scores of the untrained encoders, over the same seeds; of a trial, of its own seed.
        searched_seeds: over how many seeds the search took the mean by which it chose the trial.
    """

    study: str
    trial: int
    seed: int
    final: bool
    scores: Mapping[str, float]
    over_seeds: Mapping[str, Summary]
    untrained: Mapping[str, Summary]
    searched_seeds: int = 1


@dataclass(frozen=True)
class Source:
    """An encoder to export.

    Attributes:
        file: the content of its file.
        experiment: the one that trained it; None where the file does not say.
        run: the run that trained it; None where a file was given.
        epoch: of a snapshot, the epoch after which it was taken.
    """

    file: EncoderFile
    experiment: Experiment | None
    run: Run | None
    epoch: int | None = None


def find_source(given: str, results: str, trial: int | None = None, seed: int | None = None) -> Source:
    """Return the encoder that `given` names.

    Args:
        given: an encoder file (see `is_encoder_file`), or a study: that of final runs, or one that was
            searched. Of that its final runs are taken, or, where there are none, the best trials whose
            encoders the search has kept.
        results: the results folder.
        trial: the trial to take; by default the best one that has an encoder.
        seed: the seed of the run to take; by default the first. (The seed with the best test score would
            flatter the configuration.)

    Raises:
        InputError: the study has no such run, `trial` or `seed` was given with a file, or the file cannot be
            read or is not an encoder of contrasweep.
        StoreError: there is no such study.
    """
    if is_encoder_file(given):
        if trial is not None or seed is not None:
            raise InputError(f"--trial and --seed go with a study; {given} is the encoder of one run")
        with told_to_user():
            file = read_encoder(read_given(given), given)
        return Source(file, experiment_in_file(file.experiment, given), None, snapshot_epoch(given))
    return source_of_study(ResultsStore(results), given, trial, seed)


def source_of_study(
    store: ResultsStore, given: str, trial: int | None = None, seed: int | None = None
) -> Source:
    """Return the encoder of a study; the arguments and errors are those of `find_source`."""
    study, rows = runs_with_encoders(store, given)
    record = store.study(study)
    chosen = _run_of(rows, _ranked(store, record), trial, seed, study)
    path = encoder_path(study, *chosen)
    try:
        content = store.location.read(path)
    except FileNotFoundError:
        raise InputError(
            f"the encoder of that run is gone: there is no {path} in {store.location.uri}"
        ) from None
    with told_to_user():
        file = read_encoder(content, path)
    run = _final_run if record.is_final else _trial_run
    return Source(file, experiment_in_file(file.experiment, path), run(store, study, chosen, rows))


def _ranked(store: ResultsStore, record: StudyRecord) -> list[int]:
    """Return the completed trials of the searched study, best first; empty where it is not in the store."""
    searched = record.searched_study
    if record.is_final and is_of_earlier_search(store, record):
        return []
    try:
        trials = store.study(searched).require_search().trials
        return [one.trial for one in best_trials(store, searched, top=trials)]
    except (StoreError, SweepFailed):
        return []


def _run_of(
    rows: Mapping[TrialSeed, object],
    ranked: Sequence[int],
    trial: int | None,
    seed: int | None,
    study: str,
) -> TrialSeed:
    trials = sorted({one for one, _ in rows})
    first = next((one for one in ranked if one in trials), trials[0])
    chosen = first if trial is None else trial
    seeds = sorted(own for one, own in rows if one == chosen)
    if not seeds:
        raise InputError(f"{study} has no encoder of trial {trial}; it has those of {_listed(trials)}")
    if seed is not None and seed not in seeds:
        raise InputError(f"{study} has no run of trial {chosen} with seed {seed}; it has {_listed(seeds)}")
    return chosen, seeds[0] if seed is None else seed


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _final_run(
    store: ResultsStore, study: str, chosen: TrialSeed, rows: Mapping[TrialSeed, dict[str, Any]]
) -> Run:
    own = [row for (trial, _), row in rows.items() if trial == chosen[0]]
    trained, *controls = summarise_runs(own)
    untrained: FinalSummary | None = controls[0] if controls else None
    scores = {name: score for name, score in _scores(rows[chosen], _TEST).items() if name in trained.scores}
    return Run(study, *chosen, True, scores, trained.scores, {} if untrained is None else untrained.scores)


def _trial_run(
    store: ResultsStore, study: str, chosen: TrialSeed, rows: Mapping[TrialSeed, dict[str, Any]]
) -> Run:
    trial, seed = chosen
    epochs = store.tables(study).epochs
    at_start = pc.and_(pc.equal(epochs["trial"], trial), pc.equal(epochs["seed"], seed))
    at_start = pc.and_(at_start, pc.equal(epochs["epoch"], 0))
    before = [_scores(row, _VALIDATION) for row in epochs.filter(at_start).to_pylist()]
    untrained = {name: Summary(score, None, 1) for own in before for name, score in own.items()}
    scores, seeds = _scores(rows[chosen], _VALIDATION), store.study(study).seeds
    return Run(study, *chosen, False, scores, {}, untrained, seeds)


def _scores(row: Mapping[str, Any], prefix: str) -> dict[str, float]:
    return {name: score for name, score in cells_under(prefix, row).items() if score is not None}
