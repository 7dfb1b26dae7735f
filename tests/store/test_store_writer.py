import math
from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest

from contrasweep.tuning.store import StoreError, TrialInfo, TrialWriter, end_trial
from contrasweep.tuning.store.attempts import next_attempt
from contrasweep.tuning.store.reopen import reopen_failed
from contrasweep.tuning.store.writer import FLUSH_SECONDS


def test_a_trial_from_start_to_end(location, record, store, info):
    writer = TrialWriter(location, record, info(3, seed=7, kernel="cosine", layers=2), 1)
    writer.start()
    assert store.trials("digits-1")["status"].to_pylist() == ["interrupted"]  # no driver, no heartbeat
    for epoch in range(3):
        writer.add_epoch(
            epoch, {"loss": 1.0 / (epoch + 1)}, seconds=2.0, train_seconds=1.5, evaluate_seconds=0.25
        )
    writer.finish("completed", {"val.accuracy": 0.9}, rung=4)
    (row,) = store.trials("digits-1").to_pylist()
    expected = {
        "study": "digits-1",
        "trial": 3,
        "seed": 7,
        "attempt": 1,
        "phase": "search",
        "config": "abc123",
        "method": "fair-cclk",
        "dataset": "digits",
        "status": "completed",
        "error": None,
        "epoch": 2,
        "epochs": 10,
        "rung": 4,
        "train_seconds": 4.5,
        "evaluate_seconds": 0.75,
        "cpus": 1.0,
        "gpus": 0.0,
        "hp.kernel": "cosine",
        "hp.sigma2": None,
        "hp.layers": 2,
        "metric.loss": None,
        "metric.val.accuracy": 0.9,
    }
    assert {name: row[name] for name in expected} == expected
    assert row["seconds"] == (row["finished"] - row["started"]).total_seconds()
    epochs = store.epochs("digits-1")
    assert epochs["epoch"].to_pylist() == [0, 1, 2]
    assert epochs["metric.loss"].to_pylist() == [1.0, 1 / 2, 1 / 3]
    assert epochs["metric.val.accuracy"].to_pylist() == [None] * 3


def test_nan_is_recorded_as_nan_and_not_as_missing(location, record, store, info):
    writer = TrialWriter(location, record, info(), 1)
    writer.start()
    writer.finish("failed", {"loss": math.nan}, error="the loss is NaN")
    (row,) = store.trials("digits-1").to_pylist()
    assert math.isnan(row["metric.loss"])
    assert row["metric.val.accuracy"] is None
    assert row["error"] == "the loss is NaN"


def test_an_error_of_any_text_is_recorded(location, record, store, info):
    told = "no image in caf\udce9 or \ud800"
    writer = TrialWriter(location, record, info(0))
    writer.start()
    writer.finish("failed", {}, error=told)
    assert end_trial(location, record, info(1), "failed", error=told) == "failed"
    recorded = store.trials("digits-1")["error"].to_pylist()
    assert recorded == ["no image in caf\\udce9 or \\ud800"] * 2


def test_epochs_wait_no_longer_than_the_limit(location, record, store, info):
    clock = [0.0]
    writer = TrialWriter(location, record, info(), 1, clock=lambda: clock[0])
    writer.start()

    def epoch(number: int, at: float, seconds: float) -> int:
        clock[0] = at
        writer.add_epoch(number, {}, seconds=seconds, train_seconds=seconds)
        return store.epochs("digits-1").num_rows

    assert epoch(0, at=1.0, seconds=1.0) == 0
    assert epoch(1, at=2.0, seconds=1.0) == 0
    assert epoch(2, at=FLUSH_SECONDS - 1.0, seconds=1.0) == 3  # the next chance would come too late
    assert epoch(3, at=FLUSH_SECONDS, seconds=1.0) == 3
    assert epoch(4, at=FLUSH_SECONDS + 1, seconds=60.0) == 5


def test_flush_writes_waiting_rows_once(location, record, store, info):
    writer = TrialWriter(location, record, info(), 1, clock=lambda: 0.0)
    writer.start()
    writer.add_epoch(0, {}, seconds=0.0, train_seconds=0.0)
    writer.flush()
    writer.flush()
    assert store.epochs("digits-1").num_rows == 1
    assert len(location.files("epochs/study=digits-1")) == 1


def test_epochs_are_kept_when_the_store_cannot_be_written(location, record, store, info, monkeypatch):
    writer = TrialWriter(location, record, info(), 1, clock=lambda: 0.0)
    writer.start()
    writer.add_epoch(0, {}, seconds=0.0, train_seconds=0.0)
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            writer.flush()
    writer.flush()
    assert store.epochs("digits-1")["epoch"].to_pylist() == [0]


def test_a_trial_whose_end_could_not_be_written_can_be_finished_again(
    location, record, store, info, monkeypatch
):
    writer = TrialWriter(location, record, info(), 1)
    writer.start()
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            writer.finish("completed", {})
    assert store.trials("digits-1")["status"].to_pylist() == ["interrupted"]
    writer.finish("completed", {})
    assert store.trials("digits-1")["status"].to_pylist() == ["completed"]


@pytest.mark.parametrize("end", ["running", "done"])
def test_only_an_end_can_finish(location, record, info, end):
    writer = TrialWriter(location, record, info(), 1)
    writer.start()
    with pytest.raises(StoreError, match="completed, stopped, failed, interrupted"):
        writer.finish(end, {})


def test_results_belong_between_start_and_end(location, record, info):
    writer = TrialWriter(location, record, info(), 1)
    with pytest.raises(StoreError, match="has not started"):
        writer.add_epoch(0, {}, seconds=0.0, train_seconds=0.0)
    writer.start()
    writer.finish("completed", {})
    with pytest.raises(StoreError, match="has ended"):
        writer.finish("failed", {})


def test_wrong_names_are_refused_before_anything_is_written(location, record, info):
    with pytest.raises(StoreError, match="sigma3"):
        TrialWriter(location, record, info(sigma3=1.0), 1)
    writer = TrialWriter(location, record, info(), 1)
    writer.start()
    with pytest.raises(StoreError, match="accuracy"):
        writer.add_epoch(0, {"accuracy": 1.0}, seconds=0.0, train_seconds=0.0)
    with pytest.raises(StoreError, match="negative"):
        TrialInfo(0, -1, "search", "x", {}, 10)


def test_a_row_that_lacks_a_cell_is_an_error(location, record):
    from contrasweep.tuning.store.parts import write_rows

    with pytest.raises(KeyError):
        write_rows(location, "trials/x.parquet", [{"trial": 1}], record.columns.trials)


def test_attempts_are_counted_by_file_names(location, record, attempt):
    assert next_attempt(location, record, trial=0, seed=0) == 1
    attempt(1, range(1))
    attempt(2, range(1))
    assert next_attempt(location, record, trial=0, seed=0) == 3
    assert next_attempt(location, record, trial=0, seed=1) == 1
    assert next_attempt(location, record, trial=1, seed=0) == 1
    location.write("trials/study=digits-1/trial-000000-seed-0-attempt-9.parquet", b"damaged")
    assert next_attempt(location, record, trial=0, seed=0) == 10


def test_the_driver_records_a_stopped_trial_with_its_last_epoch(location, record, store, attempt, info):
    attempt(1, range(4))
    assert end_trial(location, record, info(kernel="rbf"), "stopped", rung=1) == "stopped"
    (row,) = store.trials("digits-1").to_pylist()
    assert (row["status"], row["epoch"], row["rung"], row["attempt"]) == ("stopped", 3, 1, 2)
    assert row["metric.val.accuracy"] == pytest.approx(1.03)
    assert row["train_seconds"] == 3.0
    assert row["hp.kernel"] == "rbf"
    assert store.epochs("digits-1")["epoch"].to_pylist() == [0, 1, 2, 3]


@pytest.mark.parametrize("hidden", ["part-000", "part-0001"])
def test_a_stopped_trial_keeps_epochs_that_a_network_share_lists_late(
    location, record, store, attempt, info, monkeypatch, hidden
):
    writer = attempt(1, range(2))
    for epoch in (2, 3):
        writer.add_epoch(epoch, {"val.accuracy": 0.4}, seconds=1.0, train_seconds=0.75)
    writer.flush()
    late = store.epochs("digits-1")
    files = type(location).files
    with monkeypatch.context() as patched:
        patched.setattr(
            type(location),
            "files",
            lambda *args, **below: [one for one in files(*args, **below) if hidden not in one.path],
        )
        told = {"epoch": 3, "metrics": {"val.accuracy": 0.5}}
        end_trial(location, record, info(kernel="rbf"), "stopped", rung=3, **told)
    (row,) = store.trials("digits-1").to_pylist()
    assert (row["epoch"], row["rung"], row["metric.val.accuracy"]) == (3, 3, 0.5)
    assert store.epochs("digits-1").equals(late)


@pytest.mark.parametrize("by_driver", [False, True])
def test_the_seconds_of_a_row_are_those_of_the_last_attempt_whoever_ends_it(
    location, record, store, attempt, info, by_driver
):
    attempt(1, range(3))
    writer = attempt(2, range(3, 5), resumed=2)
    if by_driver:
        end_trial(location, record, info(kernel="rbf"), "stopped")
    else:
        writer.finish("completed", {})
    assert store.trials("digits-1")["train_seconds"].to_pylist() == [1.5]


def test_a_failed_trial_that_is_opened_again_and_then_ended_keeps_its_seconds(
    location, record, store, attempt, info
):
    attempt(1, range(3), end="failed")
    assert reopen_failed(location, record) == [0]
    assert store.trials("digits-1")["metric.val.accuracy"].to_pylist() == [None]
    end_trial(location, record, info(kernel="rbf"), "stopped")
    (row,) = store.trials("digits-1").to_pylist()
    assert (row["attempt"], row["status"], row["train_seconds"]) == (3, "stopped", 2.25)


def test_a_trial_that_died_before_its_first_row_is_recorded(location, record, store, info):
    end_trial(location, record, info(5, seed=2, kernel="rbf", sigma2=3.0), "failed", error="out of memory")
    (row,) = store.trials("digits-1").to_pylist()
    assert (row["trial"], row["seed"], row["attempt"], row["status"]) == (5, 2, 1, "failed")
    assert (row["error"], row["hp.sigma2"], row["epoch"]) == ("out of memory", 3.0, None)


def test_a_trial_of_an_earlier_driver_ended_with_its_last_epoch(location, record, store, attempt, info):
    attempt(1, range(3))
    a_day_later = datetime.now(UTC) + timedelta(days=1)
    later = {"since": a_day_later, "now": lambda: a_day_later + timedelta(minutes=1)}
    end_trial(location, record, info(kernel="rbf"), "stopped", **later)
    (row,) = store.trials("digits-1").to_pylist()
    assert row["finished"] == store.epochs("digits-1")["time"].to_pylist()[-1]
    assert row["seconds"] == (row["finished"] - row["started"]).total_seconds()
    end_trial(location, record, info(1), "failed", **later)
    assert store.trials("digits-1")["finished"].to_pylist()[1] == later["now"](), "it began under this driver"


@pytest.mark.parametrize("end", ["completed", "failed", "stopped"])
def test_an_end_that_the_worker_recorded_stands(location, record, store, attempt, info, end):
    attempt(1, range(2), end=end)
    assert end_trial(location, record, info(kernel="rbf"), "failed", error="worker died") == end
    (row,) = store.trials("digits-1").to_pylist()
    assert (row["status"], row["error"], row["attempt"]) == (end, None, 1)


def test_an_interrupted_trial_can_still_end(location, record, store, attempt, info):
    attempt(1, range(2), end="interrupted")
    assert end_trial(location, record, info(kernel="rbf"), "failed") == "failed"
    assert store.trials("digits-1")["status"].to_pylist() == ["failed"]


def test_small_files_are_read_without_this_package(location, record, attempt):
    attempt(1, range(3), end="completed")
    (file,) = location.files("trials/study=digits-1")
    table = pq.ParquetFile(file.path).read()
    assert table["hp.sigma2"].type == "double"
    assert table["hp.sigma2"].null_count == 1
