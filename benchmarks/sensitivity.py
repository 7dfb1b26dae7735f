"""The seconds to read and analyse a large study, and to read the same runs through Ray's ResultGrid.

    python -m benchmarks.sensitivity --trials 10000 --epochs 50
    python -m benchmarks.sensitivity --ray --trials 500 --epochs 50

The study is a random search on a known objective: half of its trials are stopped early at one of two rungs, a
hundredth have failed. It is read before compaction (one file per trial and one for its epochs, as workers
write them) and after it. With --ray, Ray Tune also writes the same runs, one report per epoch, and reads them
back.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.search.axes import axes_of, default_row, draw_codes, strata_of, values_of
from contrasweep.tuning.sensitivity.analyse import analyse_observations
from contrasweep.tuning.sensitivity.observations import observations_from
from contrasweep.tuning.sensitivity.page import sensitivity_page
from contrasweep.tuning.statistics import Floats
from contrasweep.tuning.store import ResultsStore, StudyRecord, compact, open_location, save_study
from contrasweep.tuning.store.parts import Key, epoch_path, trial_path, write_rows

STUDY = "large"
START = datetime(2026, 1, 1, tzinfo=UTC)
T = TypeVar("T")


def timed(name: str, work: Callable[[], T]) -> T:
    started, used = time.perf_counter(), time.process_time()
    found = work()
    wall, cores = time.perf_counter() - started, time.process_time() - used
    print(f"{name:44s} {wall:8.2f} s wall, {cores:8.2f} s of processor", flush=True)
    return found


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


def build(folder: Path, trials: int, epochs: int) -> None:
    """Write the study as workers do: two small files per trial."""
    rng = np.random.default_rng(0)
    record = plan_sweep(
        "fair-cclk", "colour-digits", trials=trials, epochs=epochs, results=folder, name=STUDY
    ).record()
    location = open_location(folder, writable=True)
    save_study(location, record)
    space = record.space
    axes, strata = axes_of(space), strata_of(space)
    codes = draw_codes(axes, strata, trials, rng)
    codes[0] = default_row(axes)
    score = objective([axis.name for axis in axes], codes, rng)
    for trial in range(trials):
        chance = rng.random()
        status = "failed" if chance < 0.01 else "stopped" if chance < 0.5 and trial else "completed"
        last = {"failed": 2, "stopped": epochs // 9 if chance < 0.3 else epochs // 3, "completed": epochs}[
            status
        ]
        curve = score[trial] - 0.3 * np.exp(-np.arange(last + 1) / (epochs / 5))
        values = space.complete(values_of(axes, codes[trial]))
        row = _row(record, trial, status, last, epochs, float(score[trial]), values)
        key = Key(trial, 0, 1)
        write_rows(location, trial_path(STUDY, key), [row], record.columns.trials)
        epochs_ = _epochs(record, trial, curve).to_pylist()
        write_rows(location, epoch_path(STUDY, key, 0), epochs_, record.columns.epochs)


def _row(
    record: StudyRecord, trial: int, status: str, last: int, epochs: int, score: float, values: dict[str, Any]
) -> dict[str, Any]:
    metrics = {"val.accuracy": score, "val.ridge_accuracy": score} if status == "completed" else {}
    ended = START + timedelta(seconds=2 * trial)
    return {
        **dict.fromkeys(record.columns.trials.names),
        "trial": trial,
        "seed": 0,
        "attempt": 1,
        "phase": "search",
        "status": status,
        "epoch": last,
        "epochs": epochs,
        "rung": last if status == "stopped" else None,
        "started": ended - timedelta(seconds=2),
        "finished": ended,
        "seconds": 2.0,
        **record.columns.hyperparameter_cells(values),
        **record.columns.metric_cells(metrics),
    }


def _epochs(record: StudyRecord, trial: int, curve: Floats) -> pa.Table:
    count = len(curve)
    known = {
        "trial": np.full(count, trial),
        "seed": np.zeros(count, int),
        "attempt": np.ones(count, int),
        "epoch": np.arange(count),
        "time": pa.array([START] * count, pa.timestamp("us", tz="UTC")),
        "seconds": np.full(count, 0.04),
        "metric.val.ridge_accuracy": curve,
    }
    schema = record.columns.epochs
    columns = [
        pa.array(known[f.name], f.type) if f.name in known else pa.nulls(count, f.type) for f in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def read_and_analyse(folder: Path, record: StudyRecord) -> None:
    store = ResultsStore(folder)
    timed("read uncompacted, trials and epochs", lambda: (store.trials(STUDY), store.epochs(STUDY)))
    timed("compact", lambda: compact(open_location(folder, writable=True), STUDY))
    trials, epochs = timed(
        "read compacted, trials and epochs", lambda: (store.trials(STUDY), store.epochs(STUDY))
    )
    print(f"{'':44s} {trials.num_rows:,} trials, {epochs.num_rows:,} epochs")
    observed = timed("observations", lambda: observations_from(record, trials, epochs))
    found = timed("all analyses", lambda: analyse_observations([observed]))
    page = timed("page", lambda: sensitivity_page(found, [record], "benchmark"))
    print(f"page of {len(page) / 1e6:.1f} MB")


def read_through_ray(folder: Path, record: StudyRecord) -> None:
    """Write the runs of the study with Ray Tune and read them back, beside our own read of the same runs."""
    import ray
    from ray import tune

    store = ResultsStore(folder)
    curves: dict[int, list[float]] = {}
    for row in store.epochs(STUDY).select(["trial", "metric.val.ridge_accuracy"]).to_pylist():
        curves.setdefault(row["trial"], []).append(row["metric.val.ridge_accuracy"])
    ray.init(include_dashboard=False, log_to_driver=False, configure_logging=False)
    held = ray.put(curves)

    def trainable(config: dict[str, Any]) -> None:
        for epoch, score in enumerate(ray.get(held)[config["trial"]]):
            tune.report({"epoch": epoch, "score": score})

    run = tune.RunConfig(storage_path=str(folder / "ray"), name="runs", verbose=0)
    tuner = tune.Tuner(
        trainable,
        param_space={"trial": tune.grid_search(sorted(curves))},
        tune_config=tune.TuneConfig(reuse_actors=True),
        run_config=run,
    )
    timed("Ray Tune runs them", tuner.fit)

    def read() -> int:
        grid = tune.Tuner.restore(str(folder / "ray" / "runs"), trainable=trainable).get_results()
        return sum(len(result.metrics_dataframe) for result in grid)

    size = sum(file.stat().st_size for file in (folder / "ray").rglob("*") if file.is_file())
    rows = timed("read through ResultGrid, every epoch", read)
    print(f"{'':44s} {rows:,} epochs from {size / 1e6:.1f} MB")
    ray.shutdown()
    ours = sum(f.stat().st_size for kind in ("trials", "epochs") for f in (folder / kind).rglob("*.parquet"))
    timed("read from our store, every epoch", lambda: (store.trials(STUDY), store.epochs(STUDY)))
    print(f"{'':44s} from {ours / 1e6:.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument(
        "--ray", action="store_true", help="also through Ray's ResultGrid (500 trials: minutes)"
    )
    parser.add_argument("--keep", type=Path, help="keep the results here, or use those already here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = (options.keep or Path(scratch)) / "results"
        if not (folder / "studies").exists():
            timed("build", lambda: build(folder, options.trials, options.epochs))
        record = ResultsStore(folder).study(STUDY)
        read_and_analyse(folder, record)
        if options.ray:
            read_through_ray(folder, record)


if __name__ == "__main__":
    main()
