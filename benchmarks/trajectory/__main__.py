"""Test scores of a table's rows on the way: one run a row and seed, scored at several epochs.

    python -m benchmarks.trajectory cclk-t3 infonce --scale released --at 0 5 20 50 --seeds 1 2 --keep FOLDER

A run trains on all training images, as a final run does, with the seed's own order and views, so its last
scores are those of the table. Nothing is selected by them, so the test images may be read at every epoch.

Each run has two files in FOLDER: its scores (Parquet, a row an epoch) and its state, with which the same
command goes on where it was killed. The state is removed when the run has ended. `benchmarks.trajectory.page`
shows the scores of several such folders. A run may go on on another device than the one on which it began.
"""

import argparse
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from pyarrow import parquet

from contrasweep.data import load_test
from contrasweep.search_spaces.tables import load_table
from contrasweep.tuning.cli.options import parse_settings
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.files import write_whole, written_whole
from contrasweep.tuning.objectives.prepared import Prepared, prepare_data
from contrasweep.tuning.tables.plan import SCALES, plan_table
from contrasweep.tuning.training.devices import AUTO, device_for
from contrasweep.tuning.training.evaluation import fitted_scores
from contrasweep.tuning.training.pretrain import EpochRecord, pretrain

SAVED_EVERY = 5
"""Epochs between two files of a run's state."""


@dataclass(frozen=True)
class Run:
    """One run of a table's row.

    Attributes:
        row: the row's key.
        experiment: with its seed, without a validation split.
        folder: where its files are.
    """

    row: str
    experiment: Experiment
    folder: Path

    @property
    def name(self) -> str:
        """What tells the run from others in the folder."""
        e = self.experiment
        return f"{self.row}-{e.epochs}-epochs-rate-{e.optimizer.lr:g}-seed-{e.seed}"

    @property
    def state(self) -> Path:
        """The file of its state."""
        return self.folder / f"{self.name}.checkpoint"

    @property
    def scores(self) -> Path:
        """The file of its scores."""
        return self.folder / f"{self.name}.parquet"

    def rows(self) -> list[dict[str, Any]]:
        """Return the scores that were kept so far, by epoch."""
        found: list[dict[str, Any]] = (
            parquet.read_table(self.scores).to_pylist() if self.scores.exists() else []
        )
        return found


def go_on(run: Run, data: Prepared, test: Any, at: Sequence[int], until: int | None = None) -> None:
    """Train a run to its end or to an epoch, from its kept state, and keep its scores at some epochs.

    Its state stays when the run stops before its end, so that a later call can go on.
    """
    rows = run.rows()
    end = min(until or run.experiment.epochs, run.experiment.epochs)
    if rows and rows[-1]["epoch"] >= end:
        return
    seconds = rows[-1]["seconds"] if rows else 0.0
    resume = run.state if run.state.exists() else None
    begun = time.perf_counter()
    for record in pretrain(run.experiment, resume, data=data):
        last = record.epoch >= end
        if record.epoch in at or last:
            scores = _scores(record, run.experiment, data, test)
            spent = seconds + time.perf_counter() - begun
            rows = [row for row in rows if row["epoch"] < record.epoch]
            rows.append(_row(run, record.epoch, spent, scores))
            with written_whole(run.scores) as file:
                parquet.write_table(pa.Table.from_pylist(rows), file)
            logging.info("%s, epoch %d: %s", run.name, record.epoch, scores)
        if record.finished:
            run.state.unlink(missing_ok=True)
        elif last or record.epoch % SAVED_EVERY == 0:
            write_whole(run.state, record.checkpoint())
        if last:
            return


def _scores(record: EpochRecord, experiment: Experiment, data: Prepared, test: Any) -> dict[str, float]:
    return fitted_scores(record.objective, data, test, experiment, experiment.probes.classifier, test=True)


def _row(run: Run, epoch: int, seconds: float, scores: Mapping[str, float]) -> dict[str, Any]:
    e = run.experiment
    told = {"row": run.row, "epochs": e.epochs, "rate": e.optimizer.lr, "seed": e.seed, "epoch": epoch}
    return {**told, "seconds": seconds, **scores}


def _runs(given: argparse.Namespace) -> Iterator[Run]:
    plan = plan_table(load_table(given.table), scale=given.scale)
    column = given.column or plan.cells[0].column
    cells = {cell.row: cell for cell in plan.cells if cell.column == column}
    for seed in given.seeds:
        for row in given.rows:
            experiment = cells[row].planned.on_all_training_data()
            values = {**parse_settings(given.set), "seed": seed}
            yield Run(row, experiment.with_values(values), given.keep)


def main() -> None:
    """Train the runs one after the other, with one thread."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("rows", nargs="+")
    parser.add_argument("--column", help="whose settings the rows take; default: the table's first")
    parser.add_argument("--scale", choices=SCALES, default="paper")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE")
    parser.add_argument("--at", type=int, nargs="*", default=[0])
    parser.add_argument("--until", type=int, metavar="EPOCH", help="stop each run here; it can go on later")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--device", default=AUTO, help="auto (a GPU if there is one), cpu or cuda")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.set_num_threads(1)
    # Without a validation split, the prepared training set is the same for all runs of a dataset.
    prepared: dict[str, tuple[Prepared, Any]] = {}
    for run in _runs(given):
        name = run.experiment.dataset
        if name not in prepared:
            data = prepare_data(run.experiment, None, torch.device(device_for(given.device)))
            prepared[name] = data, data.test_data(load_test(name))
        go_on(run, *prepared[name], given.at, given.until)


if __name__ == "__main__":
    main()
