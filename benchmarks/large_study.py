"""The time to read, report and analyse a large study, and to read the same runs through Ray's ResultGrid.

    python -m benchmarks.large_study [--trials 10000] [--epochs 50] [--keep FOLDER]
    python -m benchmarks.large_study --ray --trials 500

Nothing is trained: the study is a random search on a known objective, written as workers write it. Half of
its trials are stopped early at one of two rungs, a hundredth have failed. It is read before compaction (one
file per trial and one for its epochs) and after it. With --ray, Ray Tune also writes the same runs, one
report per epoch, and reads them back.
"""

import argparse
import resource
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import timed
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.reports import rows
from contrasweep.tuning.reports.report import write_report
from contrasweep.tuning.search.axes import axes_of, default_row, draw_codes, strata_of, values_of
from contrasweep.tuning.sensitivity.analyse import analyse_observations
from contrasweep.tuning.sensitivity.observations import observations_from
from contrasweep.tuning.sensitivity.page import sensitivity_page
from contrasweep.tuning.statistics import Floats
from contrasweep.tuning.store import ResultsStore, StudyRecord, compact, open_location
from tests.studies import Run, WrittenStudy

STUDY = "large"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--keep", type=Path, help="keep results and pages here, or use those already here")
    parser.add_argument(
        "--ray", action="store_true", help="also through Ray's ResultGrid (500 trials: minutes)"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        results = folder / "results"
        if not (results / "studies").exists():
            with timed("build"):
                build(results, options.trials, options.epochs)
        store = ResultsStore(results)
        read_and_compact(store, results)
        report(store, folder)
        analyse(store)
        print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")
        if options.ray:
            read_through_ray(store, folder)


def build(results: Path, trials: int, epochs: int) -> None:
    """Write the study as workers do: two small files per trial."""
    rng = np.random.default_rng(0)
    plan = plan_sweep("fair-cclk", "colour-digits", trials=trials, epochs=epochs, results=results, name=STUDY)
    study = WrittenStudy(results, plan.record())
    axes = axes_of(plan.space)
    codes = draw_codes(axes, strata_of(plan.space), trials, rng)
    codes[0] = default_row(axes)
    scores = objective([axis.name for axis in axes], codes, rng)
    values = (plan.space.complete(values_of(axes, row)) for row in codes)
    study.write(*(run_of(*each, epochs, rng) for each in zip(values, scores.tolist(), strict=True)))


def objective(names: list[str], codes: Floats, rng: np.random.Generator) -> Floats:
    """Return scores in 0..1: learning rate and kernel matter, sigma2 matters under rbf, nothing else does."""
    lr, kernel, sigma2 = (codes[:, names.index(name)] for name in ("optimizer.lr", "kernel", "sigma2"))
    return (
        0.7
        - 0.4 * (lr - 0.6) ** 2
        + 0.05 * (kernel == 0) * np.nan_to_num(sigma2)
        - 0.03 * (kernel == 4)
        + rng.normal(0, 0.01, len(codes))
    )


def run_of(values: Mapping[str, Any], score: float, epochs: int, rng: np.random.Generator) -> Run:
    """Return a trial that approaches its score, unless it fails or is stopped."""
    chance = rng.random()
    status = "failed" if chance < 0.01 else "stopped" if chance < 0.5 else "completed"
    stopped = epochs // 9 if chance < 0.3 else epochs // 3
    last = {"failed": 2, "stopped": stopped, "completed": epochs}[status]
    reached = score - 0.3 * np.exp(-np.arange(last + 1) / (epochs / 5))
    noise = rng.normal(0, 0.01, last + 1)
    colour = rng.uniform(50, 900, last + 1).tolist()
    curve = {
        epoch: {"train.loss": 1 - one, "val.ridge_accuracy": one, "val.ridge_colour_mse": colour[epoch]}
        for epoch, one in enumerate((reached + noise).tolist())
    }
    curve[0] |= {"val.accuracy": curve[0]["val.ridge_accuracy"]}
    final = {"val.accuracy": score, "val.colour_mse": colour[-1]} if status == "completed" else {}
    return Run(
        values=values,
        curve=curve,
        status=status,
        final=curve[last] | final,
        rung=last if status == "stopped" else None,
        error=f"TrainingDiverged: loss nan at step {last}" if status == "failed" else None,
    )


def read_and_compact(store: ResultsStore, results: Path) -> None:
    """Read the study as workers leave it, and after its compaction."""
    with timed("read before compaction, trials and epochs"):
        store.tables(STUDY)
    with timed("compact"):
        compact(open_location(results, writable=True), STUDY)
    with timed("read after compaction, trials and epochs"):
        tables = store.tables(STUDY)
    print(f"{tables.trials.num_rows:,} trials, {tables.epochs.num_rows:,} epochs")


def report(store: ResultsStore, folder: Path) -> None:
    """Write the report and the rows of the study."""
    page = folder / "large.html"
    with timed("report"):
        write_report(store, [STUDY], page)
    print(f"page of {page.stat().st_size / 1e6:.1f} MB")
    with timed("rows as files"):
        rows.write_rows(store, STUDY, folder / "rows")


def analyse(store: ResultsStore) -> None:
    """Analyse which hyperparameters matter."""
    record, tables = store.study(STUDY), store.tables(STUDY)
    assert isinstance(record, StudyRecord)
    with timed("observations"):
        observed = observations_from(record, tables.trials, tables.epochs)
    with timed("all analyses"):
        found = analyse_observations([observed])
    with timed("page of sensitivity"):
        page = sensitivity_page(found, [record], "benchmark")
    print(f"page of {len(page) / 1e6:.1f} MB")


def read_through_ray(store: ResultsStore, folder: Path) -> None:
    """Write the runs of the study with Ray Tune and read them back, beside our own read of the same runs."""
    import ray
    from ray import tune

    curves: dict[int, list[float]] = {}
    for row in store.epochs(STUDY).select(["trial", "metric.val.ridge_accuracy"]).to_pylist():
        curves.setdefault(row["trial"], []).append(row["metric.val.ridge_accuracy"])
    ray.init(include_dashboard=False, log_to_driver=False, configure_logging=False)
    held = ray.put(curves)

    def trainable(config: dict[str, Any]) -> None:
        for epoch, score in enumerate(ray.get(held)[config["trial"]]):
            tune.report({"epoch": epoch, "score": score})

    tuner = tune.Tuner(
        trainable,
        param_space={"trial": tune.grid_search(sorted(curves))},
        tune_config=tune.TuneConfig(reuse_actors=True),
        run_config=tune.RunConfig(storage_path=str(folder / "ray"), name="runs", verbose=0),
    )
    with timed("Ray Tune runs them"):
        tuner.fit()
    with timed("read through ResultGrid, every epoch"):
        grid = tune.Tuner.restore(str(folder / "ray" / "runs"), trainable=trainable).get_results()
        count = sum(len(result.metrics_dataframe) for result in grid)
    ray.shutdown()
    with timed("read from our store, every epoch"):
        store.tables(STUDY)
    kinds = folder / "results/trials", folder / "results/epochs"
    ours = sum(file.stat().st_size for kind in kinds for file in kind.rglob("*.parquet"))
    theirs = sum(file.stat().st_size for file in (folder / "ray").rglob("*") if file.is_file())
    print(f"{count:,} epochs from {theirs / 1e6:.1f} MB of Ray Tune's files and {ours / 1e6:.1f} MB of ours")


if __name__ == "__main__":
    main()
