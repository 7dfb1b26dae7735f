"""The encoder that is exported: the file that a user names, or that of a study's final runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contrasweep.given_files import read_given
from contrasweep.models.export import EncoderFile, read_encoder
from contrasweep.tuning.errors import InputError, SweepFailed, told_to_user
from contrasweep.tuning.export.checks import SUFFIX
from contrasweep.tuning.results.commands import results_option
from contrasweep.tuning.results.final_runs import (
    UNTRAINED,
    FinalSummary,
    TrialSeed,
    completed_rows,
    encoder_path,
    summarise_runs,
)
from contrasweep.tuning.results.selection import best_trials
from contrasweep.tuning.store import FINAL_SUFFIX, ResultsStore, StoreError


@dataclass(frozen=True)
class Run:
    """The final run that trained an encoder, and the scores of its configuration over all seeds.

    Attributes:
        study: the study of the final runs.
        trial: the trial of the search whose configuration it has.
        seed: the run's seed.
        scores: the run's own test scores by name.
        over_seeds: the configuration's test scores over seeds.
        untrained: those of the untrained encoders with the same seeds; None where they were not scored.
    """

    study: str
    trial: int
    seed: int
    scores: Mapping[str, float]
    over_seeds: FinalSummary
    untrained: FinalSummary | None


@dataclass(frozen=True)
class Source:
    """An encoder to export: the content of its file, and the run that trained it, if a store knows it."""

    file: EncoderFile
    run: Run | None


def find_source(given: str, results: str, trial: int | None = None, seed: int | None = None) -> Source:
    """Return the encoder that `given` names.

    Args:
        given: an encoder file (it ends in `.safetensors`), or a study: one that was searched, whose final
            runs are taken, or the study of the final runs itself.
        results: the results folder.
        trial: of a study with final runs of several trials, the one to take; by default the one that the
            search ranks first.
        seed: the seed of the run to take; by default the first. (The seed with the best test score would
            flatter the configuration.)

    Raises:
        InputError: the study has no such run, `trial` or `seed` was given with a file, or the file cannot be
            read or is not an encoder of contrasweep.
        StoreError: there is no such study.
    """
    if given.endswith(SUFFIX):
        if trial is not None or seed is not None:
            raise InputError(f"--trial and --seed go with a study; {given} is the encoder of one run")
        with told_to_user():
            return Source(read_encoder(read_given(given), given), None)
    store = ResultsStore(results)
    name = store.study(given).searched_study + FINAL_SUFFIX
    rows = _rows_of(store, name, results)
    chosen = _run_of(rows, _ranked(store, name), trial, seed, name)
    path = encoder_path(name, *chosen)
    try:
        content = store.location.read(path)
    except FileNotFoundError:
        raise InputError(f"the encoder of that run is gone: there is no {path} in {results}") from None
    return Source(read_encoder(content, path), _run(name, chosen, rows))


def _rows_of(store: ResultsStore, name: str, results: str) -> dict[TrialSeed, dict[str, Any]]:
    """Return the completed final runs of a study.

    Raises:
        InputError: there are none.
    """
    try:
        rows = completed_rows(store, name)
    except StoreError:
        rows = {}
    if rows:
        return rows
    searched, option = name.removesuffix(FINAL_SUFFIX), results_option(results)
    raise InputError(
        f"study {searched} has no completed final run, and only final runs write encoders: "
        f"`contrasweep run {searched}{option}` trains its best configuration"
    )


def _ranked(store: ResultsStore, name: str) -> list[int]:
    """Return the completed trials of the searched study, best first; empty where it is not in the store."""
    searched = name.removesuffix(FINAL_SUFFIX)
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
    name: str,
) -> TrialSeed:
    trials = sorted({one for one, _ in rows})
    first = next((one for one in ranked if one in trials), trials[0])
    chosen = first if trial is None else trial
    seeds = sorted(own for one, own in rows if one == chosen)
    if not seeds:
        raise InputError(f"{name} has no run of trial {trial}; it has runs of {_listed(trials)}")
    if seed is not None and seed not in seeds:
        raise InputError(f"{name} has no run of trial {chosen} with seed {seed}; it has {_listed(seeds)}")
    return chosen, seeds[0] if seed is None else seed


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _run(name: str, chosen: TrialSeed, rows: Mapping[TrialSeed, dict[str, Any]]) -> Run:
    own = [row for (trial, _), row in rows.items() if trial == chosen[0]]
    trained, *controls = summarise_runs(own)
    prefix = "metric.test."
    scores = {
        column.removeprefix(prefix): value
        for column, value in rows[chosen].items()
        if column.startswith(prefix) and value is not None and not column.startswith(f"{prefix}{UNTRAINED}_")
    }
    return Run(name, *chosen, scores, trained, controls[0] if controls else None)
