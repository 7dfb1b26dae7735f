"""The time to read and to report a large study, and the size of its page.

python -m benchmarks.store [--trials 10000] [--epochs 50] [--keep FOLDER] [--small-files]
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.reports import rows
from contrasweep.tuning.reports.report import write_report
from contrasweep.tuning.store import Location, ResultsStore, StudyRecord, open_location, save_study
from contrasweep.tuning.store.parts import (
    Key,
    compacted_path,
    epoch_path,
    trial_path,
    write_rows,
    write_table,
)

STUDY = "large"
STARTED = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--keep", type=Path, help="keep results and page in this folder")
    parser.add_argument("--small-files", action="store_true", help="leave the study uncompacted")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        results, page = folder / "results", folder / "large.html"
        build = partial(build_study, results, options.trials, options.epochs, small_files=options.small_files)
        timed("build", build)
        store = ResultsStore(results)
        timed("read trials", lambda: store.trials(STUDY))
        timed("read epochs", lambda: store.epochs(STUDY))
        timed("report", lambda: write_report(store, [STUDY], page))
        print(f"page              {page.stat().st_size / 1e6:8.2f} MB")
        timed("rows as files", lambda: rows.write_rows(store, STUDY, folder / "rows"))
    print(f"peak memory       {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:8.2f} GB")


def timed(what: str, work: Callable[[], object]) -> None:
    started = time.perf_counter()
    work()
    print(f"{what:<18}{time.perf_counter() - started:8.2f} s")


def build_study(results: Path, trials: int, epochs: int, *, small_files: bool = False) -> None:
    """Write a study of random curves: an eighth of the trials stopped, a fiftieth failed and ended in NaN."""
    plan = plan_sweep("fair-cclk", "colour-digits", trials=trials, epochs=epochs, name=STUDY)
    location, record = open_location(results, writable=True), plan.record()
    record = record.model_copy(update={"created": STARTED})
    save_study(location, record)
    generator = np.random.default_rng(0)
    length = np.full(trials, epochs)
    stopped, failed = generator.random(trials) < 1 / 8, generator.random(trials) < 1 / 50
    length[stopped] = generator.integers(1, epochs, stopped.sum())
    level = generator.uniform(0.5, 0.95, trials)
    curves = [
        level[t] - 0.4 * np.exp(-np.arange(length[t] + 1) / 8) + generator.normal(0, 0.01, length[t] + 1)
        for t in range(trials)
    ]
    for trial in np.flatnonzero(failed):
        curves[trial][-1] = np.nan
    status = np.where(failed, "failed", np.where(stopped, "stopped", "completed"))
    values = [plan.space.complete(_values(plan.space.searched, generator)) for _ in range(trials)]
    rows = [
        {
            "trial": t,
            "seed": 0,
            "attempt": 1,
            "phase": "search",
            "config": f"{t:x}",
            "method": record.method,
            "dataset": record.dataset,
            "status": str(status[t]),
            "error": f"TrainingDiverged: loss nan at step {t}" if failed[t] else None,
            "epoch": int(length[t]),
            "epochs": epochs,
            "started": STARTED + timedelta(seconds=t),
            "finished": STARTED + timedelta(seconds=t + 2),
            "seconds": 2.0,
            "train_seconds": 1.5,
            "evaluate_seconds": 0.25,
            "host": "made-up",
            "device": "cpu",
            "cpus": 1.0,
            "gpus": 0.0,
            **record.columns.hyperparameter_cells(values[t]),
            **record.columns.metric_cells(_metrics(curves[t][-1], generator, bool(status[t] == "completed"))),
        }
        for t in range(trials)
    ]
    tables = (
        pa.Table.from_pylist(rows, schema=record.columns.trials),
        _epoch_table(record, curves, generator),
    )
    if small_files:
        _write_small(location, *tables, lengths=[len(curve) for curve in curves])
    else:
        write_table(location, compacted_path("trials", STUDY), tables[0])
        write_table(location, compacted_path("epochs", STUDY), tables[1])


def _values(searched: object, generator: np.random.Generator) -> dict[str, object]:
    found: dict[str, object] = {}
    for parameter in searched:
        if hasattr(parameter, "choices"):
            found[parameter.name] = parameter.choices[generator.integers(len(parameter.choices))]
        elif parameter.is_log:
            found[parameter.name] = float(
                np.exp(generator.uniform(np.log(parameter.low), np.log(parameter.high)))
            )
        else:
            found[parameter.name] = float(generator.uniform(parameter.low, parameter.high))
    return found


def _metrics(score: float, generator: np.random.Generator, full: bool) -> dict[str, float]:
    metrics = {"train.loss": 1 - score, "val.ridge_accuracy": score}
    return metrics | ({"val.accuracy": score, "val.colour_mse": generator.uniform(50, 900)} if full else {})


def _epoch_table(record: StudyRecord, curves: list[np.ndarray], generator: np.random.Generator) -> pa.Table:
    lengths = np.array([len(curve) for curve in curves])
    n = int(lengths.sum())
    epoch = np.concatenate([np.arange(length) for length in lengths])
    score = np.concatenate(curves)
    known = {
        "trial": np.repeat(np.arange(len(curves)), lengths),
        "seed": np.zeros(n, dtype=np.int64),
        "attempt": np.ones(n, dtype=np.int64),
        "epoch": epoch,
        "time": pa.repeat(pa.scalar(STARTED, pa.timestamp("us", tz="UTC")), n),
        "seconds": np.full(n, 0.04),
        "train_seconds": np.full(n, 0.03),
        "evaluate_seconds": np.full(n, 0.005),
        "metric.train.loss": np.where(epoch > 0, 1 - score, np.nan),
        "metric.val.ridge_accuracy": score,
        "metric.val.ridge_colour_mse": generator.uniform(50, 900, n),
        "metric.val.accuracy": pa.array(score, mask=epoch > 0),
    }
    schema = record.columns.epochs
    columns = [
        pa.array(known[field.name], field.type) if field.name in known else pa.nulls(n, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _write_small(location: Location, trials: pa.Table, epochs: pa.Table, lengths: list[int]) -> None:
    """Write the files that workers leave before a compaction: one for each trial, and one for its epochs."""
    begin = 0
    for trial, length in enumerate(lengths):
        key = Key(trial, 0, 1)
        row, curve = trials.slice(trial, 1), epochs.slice(begin, length)
        write_rows(location, trial_path(STUDY, key), row.to_pylist(), row.schema)
        write_rows(location, epoch_path(STUDY, key, 0), curve.to_pylist(), curve.schema)
        begin += length


if __name__ == "__main__":
    main()
