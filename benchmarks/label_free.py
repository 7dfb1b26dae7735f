"""Whether scores without labels find the encoders that labels would choose: the study of docs/label-free.md.

    python -m benchmarks.label_free run [--results results]      search, or go on where it stopped
    python -m benchmarks.label_free records [--results results]  keep the records of the searches
    python -m benchmarks.label_free page                         render the page from the kept records

A method's own search space is sampled at random, without early stopping, one seed a trial, one core. Trial
0 has the method's defaults, as in every sweep. Scores are those after the last epoch, and those of the
untrained encoder (epoch 0), on the validation split. The "hidden" accuracy is the accuracy of the usual
probe on that split: its labels decide nothing in the searches. The test split is never read.

Asked before the runs, of each of the five scores (a score that is better when smaller is taken with its
sign turned, so that 1 always means that a better score goes with a higher accuracy):

1. Is Spearman's rho of score and accuracy above 0.5 on every dataset, over the trials of all methods? Yes,
   if the 95 % interval lies above 0.5 on every dataset; no, if it lies below 0.5 on one; else undecided.
   The interval is a bootstrap of the trials within each method (2,000 resamples, percentiles).
2. And within a method? Rho of each method on each dataset with Fisher's interval (Bonett and Wright 2000):
   how many of these lie above 0, how many below.
3. What does it cost to choose by the score? The accuracy of the trial with the best score, subtracted from
   the best accuracy, for each method and dataset, and over all methods of a dataset. Beside it, the mean
   loss of a trial picked at random. Wilcoxon's signed-rank test over the pairs of method and dataset asks
   whether the score loses less than the random pick; p values are corrected by Holm for the five scores.
   (Pairs share datasets, so they are not independent: a small p value is a hint.)
4. Does the score see what training did? The share of trials that the untrained encoder beats by the score,
   beside the share that it beats by accuracy.
5. On colour data: does the score go with the colour that the features keep? Rho of the score with the
   colour MSE (larger: less colour is kept), as in 1, and the accuracy and colour MSE of the trial with the
   best score.
6. How much of the score is the views? Rho with the smallest crop, `views.min_crop`, as in 1. Every space
   searches it, and alignment and LiDAR compare crops.
7. Failures: trials that failed have no scores, and are counted. Trials whose representation collapsed, by
   the rule of `tuning.results.collapse`, stay in 1 to 6; 1 is repeated without them.
"""

import argparse
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from contrasweep.tuning.errors import SweepFailed
from contrasweep.tuning.methods.metrics import LABEL_FREE, USUAL_LABEL_FREE_VIEWS, VALIDATION
from contrasweep.tuning.objectives.prepared import spec_for
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.setup import setup_in_words
from contrasweep.tuning.results.trials import trial_outcomes, untrained_scores
from contrasweep.tuning.store import ResultsStore, StudyRecord

RECORDS: Final = Path(__file__).parents[1] / "docs/label-free.parquet"
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
        if one.status not in ("completed", "stopped", "failed"):
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["run", "records", "page"])
    parser.add_argument("--results", default="results", help="folder of the searches")
    given = parser.parse_args()
    if given.what == "run":
        run(given.results)
    elif given.what == "records":
        pq.write_table(records_of(given.results), RECORDS, compression="zstd")
    else:
        from benchmarks.label_free_page import write_page

        write_page()


if __name__ == "__main__":
    main()
