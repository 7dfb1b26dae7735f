import pyarrow.parquet as pq
import pytest

from contrasweep.tuning.store import Heartbeat, Location, StoreError, compact, end_trial
from contrasweep.tuning.store import parts as parts_module
from contrasweep.tuning.store.attempts import next_attempt, rows_of, winning_epochs
from contrasweep.tuning.store.parts import Key, read_parts


@pytest.fixture
def study(attempt):
    """Two trials done, one failed and retried, one left running."""
    attempt(1, range(3), trial=0, end="completed")
    attempt(1, range(3), trial=1, end="stopped")
    attempt(1, range(3), trial=2, end="failed")
    attempt(2, range(2, 5), trial=2, end="completed", resumed=1)
    return attempt(1, range(2), trial=3)


def contents(store) -> tuple[list, list]:
    return store.trials("digits-1").to_pylist(), store.epochs("digits-1").to_pylist()


def files(location, kind) -> list[str]:
    return sorted(info.base_name for info in location.files(f"{kind}/study=digits-1"))


def test_the_rows_stay_and_the_files_go(location, store, study):
    before = contents(store)
    result = compact(location, "digits-1")
    assert contents(store) == before
    assert (result.trials, result.epochs, result.removed, result.damaged) == (3, 13, 9, ())
    compacted, loose = files(location, "trials")
    assert compacted.startswith("compacted-")
    assert loose.startswith("trial-000003-seed-0-attempt-1-")
    assert len(files(location, "epochs")) == 1


def test_merged_rows_are_read_without_a_copy(location, record, store, study):
    compact(location, "digits-1")
    merged = read_parts(location, "epochs", record).table()
    assert merged.num_rows == 13
    assert winning_epochs(merged, store.trials("digits-1")) is merged


def test_rows_of_epochs_are_not_looked_at_one_by_one(location, study, monkeypatch):
    of_rows, looked_at = Key.of_rows, []
    monkeypatch.setattr(Key, "of_rows", lambda table: looked_at.append(table) or of_rows(table))
    compact(location, "digits-1")
    assert looked_at, "the trial that has not ended keeps its row"
    assert all("status" in table.column_names for table in looked_at)


@pytest.mark.parametrize("kind", ["trials", "epochs"])
def test_a_changed_byte_of_a_merged_file_is_noticed(location, record, attempt, kind):
    attempt(1, range(3), trial=0, end="completed")
    compact(location, "digits-1")
    (info,) = location.files(f"{kind}/study=digits-1")
    path = location.within(info)
    whole = location.read(path)
    chunk = pq.ParquetFile(info.path).metadata.row_group(0).column(0)
    end = chunk.dictionary_page_offset + chunk.total_compressed_size
    for place in range(end - 4, end):
        location.write(path, whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        (damaged,) = read_parts(location, kind, record).damaged
        assert "is not a whole Parquet file" in damaged.reason


def test_again_changes_nothing(location, store, study):
    compact(location, "digits-1")
    before = files(location, "trials"), files(location, "epochs")
    assert compact(location, "digits-1").removed == 0
    assert (files(location, "trials"), files(location, "epochs")) == before


def test_without_an_ended_trial_there_is_no_merged_file_of_trials(location, store, attempt):
    attempt(1, range(2), end="interrupted")
    attempt(2, range(2, 3), resumed=1)
    before = contents(store)
    assert compact(location, "digits-1").trials == 0
    (name,) = files(location, "trials")
    assert "attempt-2" in name
    assert contents(store) == before


def test_a_study_goes_on_after_it(location, record, store, study, attempt, info):
    compact(location, "digits-1")
    study.add_epoch(2, {}, seconds=1.0, train_seconds=1.0)
    study.finish("completed", {})
    attempt(1, range(1), trial=4, end="completed")
    assert next_attempt(location, record, trial=2, seed=0) == 3
    assert next_attempt(location, record, trial=3, seed=0) == 2
    assert end_trial(location, record, info(0), "failed") == "completed"
    assert end_trial(location, record, info(3), "failed") == "completed"
    before = contents(store)
    result = compact(location, "digits-1")
    assert (result.trials, result.epochs) == (5, 15)
    assert contents(store) == before
    assert [len(files(location, kind)) for kind in ("trials", "epochs")] == [1, 1]


def test_a_trial_is_ended_by_its_own_rows(location, record, study, attempt, info):
    attempt(1, range(1), trial=4, end="completed")
    compact(location, "digits-1")
    assert end_trial(location, record, info(3), "stopped") == "stopped"


@pytest.fixture
def large(attempt, location, monkeypatch):
    """A merged study of ten trials, in groups of four rows, whose files count as large."""
    monkeypatch.setattr(parts_module, "_ROWS_IN_A_GROUP", 4)
    monkeypatch.setattr(parts_module, "_LARGE_BYTES", 0)
    for trial in range(10):
        attempt(1, range(3), trial=trial, end="completed" if trial < 9 else None)
    compact(location, "digits-1")


@pytest.fixture
def rows_read(monkeypatch) -> list[int]:
    """Gets the number of rows that are read of each file."""
    read, counts = parts_module._read_part, []

    def counted(*arguments):
        table = read(*arguments)
        counts.append(table.num_rows)
        return table

    monkeypatch.setattr(parts_module, "_read_part", counted)
    return counts


@pytest.mark.parametrize(("trial", "most"), [(10, 1), (9, 6)])
def test_a_trial_is_ended_without_reading_the_rows_of_all_others(
    trial, most, location, record, large, store, attempt, info, rows_read
):
    """Trial 10 began after the merge; the merged file has epochs of trial 9, in its last two groups."""
    attempt(1, range(1), trial=10)
    assert end_trial(location, record, info(trial, kernel="rbf"), "stopped") == "stopped"
    assert max(rows_read) == most
    found = {row["trial"]: (row["status"], row["epoch"]) for row in store.trials("digits-1").to_pylist()}
    assert found[trial] == ("stopped", {9: 2, 10: 0}[trial])


@pytest.mark.parametrize("trial", range(10))
def test_each_trial_is_found_in_a_large_file(location, record, large, trial):
    rows, epochs = rows_of(location, record, trial, 0)
    assert [row["trial"] for row in rows] == [trial]
    assert [(row["trial"], row["epoch"]) for row in epochs] == [(trial, epoch) for epoch in range(3)]
    assert rows_of(location, record, trial, 1) == ([], []), "of another seed"


def test_a_large_file_that_tells_nothing_of_its_groups_is_read_whole(location, record, large):
    """In files of earlier versions, all rows are one group."""
    (info,) = location.files("epochs/study=digits-1")
    table = pq.ParquetFile(info.path).read()
    pq.write_table(table, info.path, write_statistics=False)
    _, epochs = rows_of(location, record, 5, 0)
    assert [row["epoch"] for row in epochs] == [0, 1, 2]


def test_a_damaged_large_file_is_named_whatever_is_asked_of_it(location, record, large):
    (info,) = location.files("epochs/study=digits-1")
    path = location.within(info)
    location.write(path, location.read(path)[:-9])
    found = parts_module.read_parts(location, "epochs", record, trial=5)
    assert [file.path for file in found.damaged] == [info.path]
    assert found.table().num_rows == 0


def test_a_zombie_still_loses_after_it(location, record, store, study, info):
    end_trial(location, record, info(3), "stopped")
    compact(location, "digits-1")
    before = contents(store)
    study.add_epoch(2, {}, seconds=1.0, train_seconds=1.0)
    study.finish("completed", {})
    assert contents(store) == before
    compact(location, "digits-1")
    assert contents(store) == before


@pytest.mark.parametrize("survived", range(12))
def test_killed_at_any_step_it_loses_nothing(location, store, study, monkeypatch, survived):
    before = contents(store)
    steps = iter(range(survived))

    def dying(method):
        def step(self, *arguments):
            if next(steps, None) is None:
                raise SystemExit("killed")
            method(self, *arguments)
            assert contents(store) == before

        return step

    with monkeypatch.context() as patch:
        patch.setattr(Location, "write", dying(Location.write))
        patch.setattr(Location, "delete", dying(Location.delete))
        if survived < 11:  # 2 files written, 4 of trials and 5 of epochs deleted
            with pytest.raises(SystemExit):
                compact(location, "digits-1")
        else:
            compact(location, "digits-1")
    assert contents(store) == before
    compact(location, "digits-1")
    assert contents(store) == before
    assert [len(files(location, kind)) for kind in ("trials", "epochs")] == [2, 1]


def test_a_reader_overtaken_again_and_again_sees_every_row_once(location, store, study, attempt, monkeypatch):
    """A compaction runs between each listing and reading of the reader; a trial ends before each."""
    read = Location.read
    moments = [("trials/study=digits-1/compacted-", 5), ("trials/study=digits-1/trial-", 4)]
    before = dict(enumerate(["completed", "stopped", "completed", "interrupted"]))

    def overtaken(self, path):
        if moments and path.startswith(moments[-1][0]):
            _, trial = moments.pop()
            with monkeypatch.context() as undisturbed:
                undisturbed.setattr(Location, "read", read)
                attempt(1, range(1), trial=trial, end="completed")
                compact(location, "digits-1")
        return read(self, path)

    monkeypatch.setattr(parts_module, "_READ_THREADS", 1)
    monkeypatch.setattr(Location, "read", overtaken)
    found = store.trials("digits-1")
    assert moments == []
    statuses = dict(zip(found["trial"].to_pylist(), found["status"].to_pylist(), strict=True))
    assert found.num_rows == len(statuses)
    assert before.items() <= statuses.items()


@pytest.mark.parametrize("torn", [False, True])
def test_what_a_merge_moved_during_the_second_listing_is_found_by_a_third(
    location, store, attempt, monkeypatch, torn
):
    """A row is merged after the second listing, or is missed by it beside a file that was just merged."""
    listed, read = parts_module.list_parts, Location.read
    attempt(1, range(1), trial=0, end="completed")
    listings = []

    def another_listing(*arguments):
        listings.append(1)
        if len(listings) != 2:
            return listed(*arguments)
        with monkeypatch.context() as undisturbed:
            undisturbed.setattr(parts_module, "list_parts", listed)
            if torn:
                compact(location, "digits-1")
            attempt(1, range(1), trial=1, end="completed")
        return [part for part in listed(*arguments) if part.compacted or not torn]

    def overtaken(self, path):
        if "trial-000001" in path and not torn:
            with monkeypatch.context() as undisturbed:
                undisturbed.setattr(parts_module, "list_parts", listed)
                undisturbed.setattr(Location, "read", read)
                compact(location, "digits-1")
        return read(self, path)

    monkeypatch.setattr(parts_module, "list_parts", another_listing)
    monkeypatch.setattr(Location, "read", overtaken)
    assert store.trials("digits-1")["trial"].to_pylist() == [0, 1]


def test_a_file_that_went_while_it_was_read_is_not_damaged(location, store, study, monkeypatch):
    read = Location.read
    pending = [True]

    def overtaken(self, path):
        if pending and path.endswith(".parquet"):
            pending.clear()
            compact(location, "digits-1")
        return read(self, path)

    monkeypatch.setattr(Location, "read", overtaken)
    assert store.damaged("digits-1") == []


def test_attempts_are_counted_in_both_kinds_of_file(location, record, study, attempt):
    compact(location, "digits-1")
    attempt(1, range(1), trial=2)  # a zombie of the attempt before
    assert next_attempt(location, record, trial=2, seed=0) == 3


def test_damaged_files_are_left_and_named(location, store, study):
    (name,) = (name for name in files(location, "trials") if name.startswith("trial-000001-"))
    path = f"trials/study=digits-1/{name}"
    location.write(path, b"PAR1 no more")
    result = compact(location, "digits-1")
    assert [file.path for file in result.damaged] == [location.path(path)]
    assert location.read(path) == b"PAR1 no more"
    assert result.trials == 2


def test_it_is_refused_while_the_driver_is_alive(location, study):
    with Heartbeat(location, "digits-1"):
        with pytest.raises(StoreError, match="'digits-1' is being run"):
            compact(location, "digits-1")
        assert compact(location, "digits-1", by_driver=True).trials == 3


UNFINISHED = [
    "epochs/study=digits-1/_x.parquet.0123abcd",
    "checkpoints/digits-1/_00000-0.pt.0123abcd",
    "exports/digits-1/00000-0/_encoder.safetensors.0123abcd",
    "studies/_digits-1.heartbeat.0123abcd",
    "studies/_digits-1.json.0123abcd",
]
OTHERS = [
    "studies/_digits-1.json.json.0123abcd",
    "epochs/study=digits-1/_SUCCESS",
    "studies/_digits-10.json.01234567",
]


def test_remains_of_dead_writers_are_cleared_when_old(location, study):
    for path in (*UNFINISHED, *OTHERS):
        location.write(path, b"half")
    location.write("tensorboard/digits-1", b"in place of a folder")

    def left() -> set[str]:
        return {location.within(info) for info in location.files("", below=True)}

    written = max(info.mtime.timestamp() for info in location.files("", below=True))
    compact(location, "digits-1", now=written + 60)
    assert left() >= {*UNFINISHED, *OTHERS}
    compact(location, "digits-1", now=written + 7200)
    assert left().isdisjoint(UNFINISHED)
    assert left() >= set(OTHERS)
