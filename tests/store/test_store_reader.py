import math
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from contrasweep.tuning.limits import LARGEST_SEED
from contrasweep.tuning.store import (
    Heartbeat,
    Location,
    ResultsStore,
    StudySchema,
    TrialWriter,
    compact,
    end_trial,
    save_study,
)
from contrasweep.tuning.store import parts as parts_module
from contrasweep.tuning.store.heartbeat import STALE_SECONDS

ROOT = Path(__file__).parents[2]

WRITERS = 4
# The full load, 2,000 trials, takes minutes: CONTRASWEEP_LOAD_TRIALS=2000 pytest tests/store -k all_the_while
LOAD_TRIALS = int(os.environ.get("CONTRASWEEP_LOAD_TRIALS", "60"))

WORKER = """
import sys
from contrasweep.tuning.store import TrialInfo, TrialWriter, open_location
from contrasweep.tuning.store.study import load_study

location = open_location(sys.argv[1])
record = load_study(location, "digits-1")
for trial in range(*map(int, sys.argv[2:])):
    writer = TrialWriter(location, record, TrialInfo(trial, 0, "search", "c", {"layers": trial}, 3))
    writer.start()
    for epoch in range(3):
        writer.add_epoch(epoch, {"loss": float(trial)}, seconds=0.0, train_seconds=0.0)
        writer.flush()
    writer.finish("completed", {"loss": float(trial)})
"""


def row_file(location: Location, trial: int, kind: str = "trials") -> str:
    """Return the file with the row (or the epochs) of a trial with one attempt."""
    folder = f"{kind}/study=digits-1"
    (name,) = (i.base_name for i in location.files(folder) if i.base_name.startswith(f"trial-{trial:06d}-"))
    return f"{folder}/{name}"


def winners(store) -> list[tuple[int, int]]:
    """Return (epoch, attempt) of the epochs that count."""
    table = store.epochs("digits-1")
    return list(zip(table["epoch"].to_pylist(), table["attempt"].to_pylist(), strict=True))


def test_a_study_without_files_gives_empty_typed_tables(store, record):
    trials, epochs = store.trials("digits-1"), store.epochs("digits-1")
    assert (trials.num_rows, epochs.num_rows) == (0, 0)
    assert trials.schema.field("hp.sigma2").type == pa.float64()
    assert epochs.schema.names == ["study", *record.columns.epochs.names]


def test_the_highest_attempt_is_the_row(store, attempt):
    attempt(1, range(2), end="completed")
    attempt(10, range(2), end="failed")
    attempt(9, range(2), end="completed")
    table = store.trials("digits-1")
    assert table["attempt"].to_pylist() == [10]
    assert table["status"].to_pylist() == ["failed"]


def test_rows_are_ordered_by_trial_and_seed(location, record, store, info):
    for trial, seed in [(10, LARGEST_SEED), (2, 1), (2, 0)]:
        TrialWriter(location, record, info(trial, seed), 1).start()
    table = store.trials("digits-1")
    assert table["trial"].to_pylist() == [2, 2, 10]
    assert table["seed"].to_pylist() == [0, 1, LARGEST_SEED]


def test_a_resumed_attempt_keeps_the_epochs_before_it(store, attempt):
    attempt(1, range(5))
    attempt(2, range(3, 7), resumed=2)
    assert winners(store) == [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 2), (6, 2)]


def test_an_attempt_from_scratch_replaces_all(store, attempt):
    attempt(1, range(5))
    attempt(2, range(2))
    assert winners(store) == [(0, 2), (1, 2)]


def test_attempts_overtake_in_a_chain(store, attempt):
    attempt(1, range(6))
    attempt(2, range(2, 4), resumed=1)
    attempt(3, range(4, 5), resumed=3)
    assert winners(store) == [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3)]


def test_an_attempt_is_limited_by_all_that_are_newer(store, attempt):
    attempt(1, range(6))
    attempt(2, range(5, 6), resumed=4)
    attempt(3, range(2, 4), resumed=1)
    assert winners(store) == [(0, 1), (1, 1), (2, 3), (3, 3)]


def test_of_two_copies_of_an_attempt_the_ended_one_counts(location, record, store, attempt):
    writer = attempt(1, range(1))
    running = location.read(row_file(location, 0))
    writer.finish("completed", {})
    for name in ("aaa", "zzz"):  # listed before and after the other
        location.write(f"trials/study=digits-1/{name}.parquet", running)
    assert store.trials("digits-1")["status"].to_pylist() == ["completed"]


def test_trials_do_not_overtake_each_other(store, attempt):
    attempt(1, range(3), trial=0)
    attempt(2, range(1), trial=1)
    table = store.epochs("digits-1")
    assert table["trial"].to_pylist() == [0, 0, 0, 1]


def test_a_zombie_loses_its_row_and_its_epochs(location, record, store, attempt, info):
    zombie = attempt(1, range(3))
    end_trial(location, record, info(kernel="rbf"), "stopped")
    zombie.add_epoch(3, {"val.accuracy": 99.0}, seconds=1.0, train_seconds=1.0)
    zombie.finish("completed", {"val.accuracy": 99.0})
    (row,) = store.trials("digits-1").to_pylist()
    assert (row["status"], row["epoch"]) == ("stopped", 2)
    assert row["metric.val.accuracy"] < 2
    assert winners(store) == [(0, 1), (1, 1), (2, 1)]


def test_epochs_of_a_second_writer_of_an_attempt_end_with_the_attempt(location, record, store, attempt, info):
    """Two writers can take one number, if a network share lists files late."""
    attempt(1, range(2), end="stopped")
    second = TrialWriter(
        location, record, info(kernel="rbf"), 1, now=lambda: datetime(2090, 1, 1, tzinfo=UTC)
    )
    second.start()
    for epoch in range(4):
        second.add_epoch(epoch, {"val.accuracy": 0.5}, seconds=1.0, train_seconds=1.0)
    second.flush()
    assert winners(store) == [(0, 1), (1, 1)]
    assert store.epochs("digits-1")["metric.val.accuracy"].to_pylist() == [0.5, 0.5], "the later ones count"


def test_an_attempt_whose_row_is_damaged_keeps_its_epochs(location, record, store, attempt):
    """A failed final run was run again; a compaction would delete the epochs that do not count."""
    attempt(1, range(3), end="failed")
    attempt(2, range(5), end="completed")
    folder = "trials/study=digits-1"
    (name,) = (i.base_name for i in location.files(folder) if "attempt-2" in i.base_name)
    row = location.read(f"{folder}/{name}")
    location.write(f"{folder}/{name}", row[:-9])
    assert winners(store) == [(epoch, 2) for epoch in range(5)]
    compact(location, "digits-1")
    location.write(f"{folder}/{name}", row)
    assert winners(store) == [(epoch, 2) for epoch in range(5)]


def test_a_zombie_loses_to_a_retry_that_is_behind_it(store, attempt):
    zombie = attempt(1, range(3))
    attempt(2, range(2, 4), resumed=1)
    zombie.add_epoch(7, {}, seconds=1.0, train_seconds=1.0)
    zombie.finish("completed", {})
    assert winners(store) == [(0, 1), (1, 1), (2, 2), (3, 2)]
    assert store.trials("digits-1")["attempt"].to_pylist() == [2]


def test_running_needs_a_driver_that_is_heard(location, record, attempt):
    attempt(1, range(1), trial=0)
    attempt(1, range(1), trial=1, end="completed")
    clock = [1000.0]
    store = ResultsStore(location, now=lambda: clock[0])

    def seen() -> tuple[list[str], str]:
        (summary,) = store.studies()
        return store.trials("digits-1")["status"].to_pylist(), summary.state

    with Heartbeat(location, "digits-1", interval=3600, now=lambda: clock[0]):
        assert seen() == (["running", "completed"], "running")
        clock[0] += STALE_SECONDS + 1
        assert seen() == (["interrupted", "completed"], "interrupted")
    assert seen() == (["interrupted", "completed"], "ended")


def test_studies_are_listed_oldest_first_with_counts(location, record, attempt):
    in_india = datetime(2027, 1, 1, 3, 0, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    save_study(location, record.model_copy(update={"name": "a-later", "created": in_india}))
    attempt(1, range(1), trial=0, end="completed")
    attempt(2, range(1), trial=0, end="failed")
    attempt(1, range(1), trial=1, end="completed")
    first, second = ResultsStore(location).studies()
    assert (first.name, first.counts) == ("digits-1", {"failed": 1, "completed": 1})
    assert (second.name, second.counts, second.state) == ("a-later", {}, "interrupted")
    assert second.columns()["created"] == "2026-12-31 21:30"


def test_damaged_and_foreign_files_are_skipped_and_named(location, record, store, attempt, caplog):
    for trial in range(5):
        attempt(1, range(1), trial=trial, end="completed")
    good = location.read(row_file(location, 0))
    table = pq.ParquetFile(pa.BufferReader(good)).read()

    def overwrite(trial: int, change) -> None:
        sink = pa.BufferOutputStream()
        pq.write_table(change, sink)
        location.write(row_file(location, trial), sink.getvalue().to_pybytes())

    location.write(row_file(location, 1), good[: len(good) // 2])
    overwrite(2, table.drop_columns(["hp.sigma2"]).append_column("hp.sigma", pa.array([1.0])))
    overwrite(3, table.set_column(table.column_names.index("hp.sigma2"), "hp.sigma2", pa.nulls(1)))
    overwrite(4, table.replace_schema_metadata({b"contrasweep.schema_version": b"7"}))

    assert store.trials("digits-1")["trial"].to_pylist() == [0]
    named = {Path(file.path).name: file.reason for file in store.damaged("digits-1")}
    assert list(named) == [Path(row_file(location, trial)).name for trial in (1, 2, 3, 4)]
    reasons = list(named.values())
    assert "not a whole Parquet file" in reasons[0]
    assert reasons[1] == "lacks hp.sigma2; has the foreign columns hp.sigma"
    assert reasons[2] == "has hp.sigma2 as null and not double"
    assert reasons[3] == "has store version 7, not 1"
    store.trials("digits-1")
    assert caplog.text.count(Path(row_file(location, 1)).name) == 1


@pytest.mark.parametrize(
    ("column", "cell", "reason"),
    [
        ("trial", None, "has a row without trial"),
        ("trial", -1, "has the trial -1"),
        ("epochs", 2**40, "has the epochs 1099511627776"),
        ("status", "asleep", "has the status 'asleep'"),
        ("phase", "", "has the phase ''"),
        ("started", 2**62, "has a started before 1970 or after the year 9999"),
        ("seed", -(2**63), "has the seed -9223372036854775808"),
        ("host", b"\xff", "has broken cells: .*UTF8"),
        ("hp.kernel", "linear", r"has kernel = 'linear'; the space: choice \['rbf', 'cosine'\]"),
        ("hp.sigma2", 0.9999, r"has sigma2 = 0.9999; the space: log \[1.0, 10000.0\]"),
        ("hp.sigma2", math.nan, "has sigma2 = nan"),
        ("seconds", math.inf, "has the seconds inf"),
        ("train_seconds", math.nan, "has the train_seconds nan"),
        ("hp.layers", -1, "has layers = -1"),
    ],
)
def test_a_file_with_a_cell_that_no_writer_writes_is_skipped_and_named(
    location, record, store, attempt, column, cell, reason
):
    for trial in range(3):
        attempt(1, range(1), trial=trial, end="completed")
    path = row_file(location, 1)
    table = pq.ParquetFile(pa.BufferReader(location.read(path))).read()
    kind = table.schema.field(column).type
    raw = {bytes: pa.binary(), int: pa.int64()}.get(type(cell), kind)
    cells = pa.array([cell], raw)
    cells = cells if raw == kind else cells.view(kind)
    sink = pa.BufferOutputStream()
    pq.write_table(
        table.set_column(table.column_names.index(column), table.schema.field(column), cells), sink
    )
    location.write(path, sink.getvalue().to_pybytes())
    assert store.trials("digits-1")["trial"].to_pylist() == [0, 2]
    (damaged,) = store.damaged("digits-1")
    assert damaged.path.endswith(path)
    assert re.match(reason, damaged.reason)
    assert "\n" not in damaged.reason


def test_a_value_that_a_logarithm_has_rounded_beyond_its_range_is_no_damage(location, record, store, info):
    value = math.nextafter(1e4, math.inf)
    TrialWriter(location, record, info(sigma2=value)).start()
    assert store.trials("digits-1")["hp.sigma2"].to_pylist() == [value]


@pytest.mark.parametrize("column", ["trial", "seed", "attempt", "epoch", "time"])
def test_a_row_of_an_epoch_tells_which_one_it_is(location, store, attempt, column):
    for trial in range(2):
        attempt(1, range(2), trial=trial)
    path = row_file(location, 1, "epochs")
    table = pq.ParquetFile(pa.BufferReader(location.read(path))).read()
    place = table.column_names.index(column)
    sink = pa.BufferOutputStream()
    empty = pa.nulls(table.num_rows, table.schema.field(column).type)
    pq.write_table(table.set_column(place, table.schema.field(column), empty), sink)
    location.write(path, sink.getvalue().to_pybytes())
    assert store.epochs("digits-1")["trial"].to_pylist() == [0, 0]
    assert [file.reason for file in store.damaged("digits-1")] == [f"has a row without {column}"]


def test_a_changed_byte_is_noticed(location, record, store, attempt):
    attempt(1, range(1), trial=0, end="completed")
    attempt(1, range(1), trial=1, end="completed")
    path = row_file(location, 1)
    content = location.read(path)
    place = content.index(b"fair-cclk")
    location.write(path, content[:place] + b"g" + content[place + 1 :])
    assert store.trials("digits-1")["trial"].to_pylist() == [0]
    assert "is not a whole Parquet file" in store.damaged("digits-1")[0].reason


@pytest.mark.parametrize("name", ["_x.parquet", ".x.parquet", "notes.txt"])
def test_unfinished_and_other_files_are_ignored(location, store, attempt, name):
    attempt(1, range(1), end="completed")
    location.write(f"trials/study=digits-1/{name}", b"unfinished")
    assert store.trials("digits-1").num_rows == 1
    assert store.damaged("digits-1") == []


def test_a_listing_that_missed_a_file_is_made_good(location, record, store, attempt, monkeypatch):
    attempt(1, range(1), trial=0, end="completed")
    attempt(1, range(1), trial=1, end="completed")
    complete = parts_module.list_parts
    listings = []

    def torn(*arguments):
        listings.append(complete(*arguments))
        return listings[-1][:1] if len(listings) == 1 else listings[-1]

    monkeypatch.setattr(parts_module, "list_parts", torn)
    assert store.trials("digits-1").num_rows == 2


def test_many_writers_and_readers_all_the_while(location, record, store):
    """No row is torn or lost, and no row that a reader has seen disappears later."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", WORKER, location.root]
    spans = [[str(first), str(LOAD_TRIALS), str(WRITERS)] for first in range(WRITERS)]
    workers = [subprocess.Popen([*command, *span], cwd=ROOT, env=environment) for span in spans]

    def read_all_the_while() -> int:
        own, reads, completed, epochs = ResultsStore(location), 0, 0, 0
        while any(worker.poll() is None for worker in workers):
            trials = own.trials("digits-1")
            now_completed = pc.sum(pc.equal(trials["status"], "completed")).as_py() or 0
            now_epochs = own.epochs("digits-1").num_rows
            assert now_completed >= completed
            assert now_epochs >= epochs
            assert own.damaged("digits-1") == []
            reads, completed, epochs = reads + 1, now_completed, now_epochs
        return reads

    with ThreadPoolExecutor(2) as readers:
        reads = [future.result() for future in [readers.submit(read_all_the_while) for _ in range(2)]]
    assert min(reads) > 0
    assert [worker.returncode for worker in workers] == [0] * WRITERS
    trials = store.trials("digits-1")
    assert trials["trial"].to_pylist() == list(range(LOAD_TRIALS))
    assert trials["metric.loss"].to_pylist() == [float(trial) for trial in range(LOAD_TRIALS)]
    assert set(trials["attempt"].to_pylist()) == {1}
    assert store.epochs("digits-1").num_rows == 3 * LOAD_TRIALS


@pytest.mark.parametrize("names", [["digits-1", "other"], ["2024"]])
def test_plain_tools_read_the_store(location, record, info, names):
    """``hp.sigma2`` is null in the first trial, and the first study does not have ``hp.lam`` at all."""
    for name in names:
        hyperparameters = {"sigma2": "float"} if name != "other" else {"sigma2": "float", "lam": "float"}
        columns = StudySchema(hyperparameters=hyperparameters, metrics=("loss",))
        study = record.model_copy(update={"name": name, "columns": columns})
        for trial in range(2):
            writer = TrialWriter(location, study, info(trial, sigma2=None if trial == 0 else 2.5), 1)
            writer.start()
            writer.add_epoch(0, {"loss": 1.0}, seconds=0.0, train_seconds=0.0)
            writer.finish("completed", {"loss": 1.0})

    folder = f"{location.root}/trials"
    table = ds.dataset(folder, format="parquet", partitioning="hive").to_table(
        columns=["study", "trial", "hp.sigma2"], filter=ds.field("hp.sigma2") > 1
    )
    assert {str(study) for study in table["study"].to_pylist()} == set(names)
    assert table["hp.sigma2"].to_pylist() == [2.5] * len(names)
    assert pq.read_table(folder).num_rows == 2 * len(names)
    assert ds.dataset(f"{location.root}/epochs", partitioning="hive").to_table().num_rows == 2 * len(names)


def test_pandas_reads_the_store(location, attempt):
    pandas = pytest.importorskip("pandas")
    attempt(1, range(3), end="completed")
    frame = pandas.read_parquet(f"{location.root}/epochs")
    assert list(frame["study"].astype(str)) == ["digits-1"] * 3
    assert list(frame["epoch"]) == [0, 1, 2]
