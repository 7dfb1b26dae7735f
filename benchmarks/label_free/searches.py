"""The searches of the study of scores without labels, and the records that are kept of them."""

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from contrasweep.tuning.errors import SweepFailed
from contrasweep.tuning.experiment.statuses import ENDED
from contrasweep.tuning.methods.metrics import LABEL_FREE, USUAL_LABEL_FREE_VIEWS, VALIDATION
from contrasweep.tuning.objectives.prepared import spec_for
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.setup import setup_in_words
from contrasweep.tuning.results.trials import trial_outcomes, untrained_scores
from contrasweep.tuning.store import ResultsStore, StudyRecord

RECORDS: Final = Path(__file__).parents[2] / "docs/label-free.parquet"
"""The kept records: a row for each trial that ended."""

HELD_OUT: Final = 0.3
"""The share of the training images that is held out: more than usual, so that accuracies are known better."""

MEASURES: Final = ("accuracy", "colour_mse", *LABEL_FREE)
"""What is kept of an encoder, trained and untrained, each by its name without `val.`."""

WITHOUT_CONDITION: Final = ("infonce", "barlow-twins", "vicreg", "simsiam", "byol")


@dataclass(frozen=True)
class Search:
    """One dataset of the study.

    Attributes:
        dataset: its name with options.
        methods: each is searched by itself.
        trials: configurations a method, the defaults among them.
        epochs: the length of every trial.
        seed: of the proposals; another one for each dataset, so that their configurations differ.
    """

    dataset: str
    methods: tuple[str, ...]
    trials: int
    epochs: int
    seed: int


SEARCHES: Final = (
    Search("digits", WITHOUT_CONDITION, trials=24, epochs=10, seed=1),
    Search("colour-digits", (*WITHOUT_CONDITION, "fair-cclk"), trials=24, epochs=10, seed=2),
    # A tenth of ColorMNIST: with all 60,000 images a trial would take ten times as long.
    Search("colormnist:images=6000", (*WITHOUT_CONDITION, "fair-cclk"), trials=12, epochs=5, seed=3),
)


def study_name(dataset: str, method: str) -> str:
    """Return the name of a study in the results folder."""
    return f"label-free-{dataset.partition(':')[0]}-{method}"


def run(results: str) -> None:
    """Run every study, or go on with it; a study in which no trial finished does not stop the next."""
    from contrasweep.tuning.ray.sweep import resume_sweep, run_sweep

    for search in SEARCHES:
        for method in search.methods:
            name = study_name(search.dataset, method)
            known = {summary.name for summary in ResultsStore(results).studies()}
            try:
                if name in known:
                    resume_sweep(name, results, progress=True)
                else:
                    run_sweep(_plan(search, method, results), progress=True)
            except SweepFailed as error:
                logging.warning("%s: %s", name, error)


def _plan(search: Search, method: str, results: str) -> SweepPlan:
    return plan_sweep(
        method,
        search.dataset,
        trials=search.trials,
        epochs=search.epochs,
        values={"probes.label_free_views": USUAL_LABEL_FREE_VIEWS, "validation.fraction": HELD_OUT},
        sampler="random",
        scheduler="none",
        seed=search.seed,
        concurrency=1,
        keep_weights=0,
        results=results,
        name=study_name(search.dataset, method),
    )


def records_of(results: str, searches: Sequence[Search] = SEARCHES) -> pa.Table:
    """Return a row for each trial that ended; the metadata of the table say what a trial consisted of."""
    store = ResultsStore(results)
    rows: list[dict[str, Any]] = []
    datasets: dict[str, dict[str, Any]] = {}
    versions: dict[str, str] = {}
    for search in searches:
        for method in search.methods:
            rows += _rows(store, search, method)
        record = store.study(study_name(search.dataset, search.methods[0]))
        datasets[search.dataset] = _setup(record)
        versions = dict(record.versions)
    metadata = {"datasets": json.dumps(datasets), "versions": json.dumps(versions)}
    return pa.Table.from_pylist(rows).replace_schema_metadata(metadata)


def _setup(record: StudyRecord) -> dict[str, Any]:
    """Return what the trials of a dataset have in common: in words, and how many images were held out."""
    facts = spec_for(record.experiment, None)
    searched = [one.name for one in record.space.searched]
    return {
        "setup": setup_in_words(record.experiment, facts, "cpu", searched),
        "held_out": facts.validation_size(record.experiment.validation.fraction),
    }


def _rows(store: ResultsStore, search: Search, method: str) -> Iterator[dict[str, Any]]:
    name = study_name(search.dataset, method)
    record, tables = store.study(name), store.tables(name)
    untrained = {
        measure: untrained_scores(tables.epochs, record, VALIDATION + measure)
        for measure in MEASURES
        if VALIDATION + measure in record.columns.metrics
    }
    seconds = {row["trial"]: row["seconds"] for row in tables.trials.to_pylist()}
    for one in trial_outcomes(tables.trials, record):
        if one.status not in ENDED:
            continue
        yield {
            "dataset": search.dataset,
            "method": method,
            "trial": one.trial,
            "seed": one.seeds[0],
            "status": one.status,
            "error": one.error,
            "epoch": one.epoch,
            "seconds": seconds[one.trial],
            "values": json.dumps(dict(one.values)),
            **{measure: one.mean(VALIDATION + measure) for measure in MEASURES},
            **{f"untrained_{measure}": untrained.get(measure, {}).get(one.trial) for measure in MEASURES},
        }
