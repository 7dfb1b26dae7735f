import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import fs

from contrasweep.tuning.store import Location, ResultsStore, StoreError, open_location
from contrasweep.tuning.store import filesystem as filesystem_module
from contrasweep.tuning.store.filesystem import ONCE

ROOT = Path(__file__).parents[2]

# Writes whole Parquet files of some megabytes as fast as it can, so that a kill falls into a write.
ENDLESS_WRITER = """
import sys
import pyarrow as pa
import numpy as np
from datetime import UTC, datetime
from contrasweep.tuning.store import open_location
from contrasweep.tuning.store.study import load_study
from contrasweep.tuning.store.parts import Key, epoch_path, write_rows, write_table

location = open_location(sys.argv[1])
record = load_study(location, "digits-1")
schema = record.columns.epochs
rows = 40_000
columns = {
    name: np.random.default_rng(0).integers(1, 2**19, rows) if pa.types.is_integer(schema.field(name).type)
    else [datetime.now(UTC)] * rows if name == "time" else np.random.default_rng(1).random(rows)
    for name in schema.names
}
table = pa.table(columns, schema=schema)
for part in range(1_000_000):
    write_table(location, epoch_path("digits-1", Key(0, 0, 1), part % 3), table)
    print("written", flush=True)
"""


def test_a_file_is_not_a_results_folder(tmp_path):
    file = tmp_path / "results.csv"
    file.write_text("x")
    with pytest.raises(StoreError, match=r"results\.csv is a file; a folder is needed"):
        open_location(file)


def test_a_folder_inside_a_file_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot be"):
        open_location(tmp_path / "file" / "results", writable=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_cannot_be_written(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="cannot be written"):
        open_location(tmp_path / "results", writable=True)
    tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("nonsense://bucket/x", "cannot be opened"),
        ("s3://[bucket", "cannot be opened: Invalid IPv6 URL"),
        ("~nobody-of-this-name/results", "cannot be opened: Could not determine home directory"),
        (" ", "is empty"),
    ],
)
def test_an_unknown_uri_is_refused(uri, words):
    with pytest.raises(StoreError, match=words):
        open_location(uri)


@pytest.mark.parametrize(("query", "seconds"), [("", 10), ("?retry_limit_seconds=70", 70)])
def test_google_tries_a_request_for_seconds_and_not_for_its_usual_quarter_of_an_hour(query, seconds):
    filesystem, root = filesystem_module._open_filesystem(f"gs://anonymous@bucket/results{query}")
    assert (filesystem.type_name, root) == ("gcs", "bucket/results")
    _, (options,) = filesystem.__reduce__()
    assert options["retry_time_limit"].total_seconds() == seconds


@pytest.mark.parametrize(
    "uri",
    [
        "s3://AKIA:hush@bucket/results",
        "abfs://box@account.dfs.core.windows.net/results?tenant_id=a&client_id=b&client_secret=hush",
    ],
)
def test_a_secret_in_the_address_is_refused_without_being_repeated(uri):
    with pytest.raises(StoreError, match="AWS_SECRET_ACCESS_KEY or AZURE_CLIENT_SECRET") as found:
        open_location(uri)
    assert "hush" not in str(found.value)


def test_looking_creates_nothing(tmp_path):
    open_location(tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_proving_that_it_is_writable_leaves_an_empty_folder(tmp_path, monkeypatch):
    write, sizes = Location.write, []
    monkeypatch.setattr(Location, "write", lambda *given: (sizes.append(len(given[2])), write(*given)))
    open_location(f"file://{tmp_path}/results", writable=True)
    assert list((tmp_path / "results").iterdir()) == []
    assert sizes == [filesystem_module.PROBE_BYTES], "a full disk takes an empty file"


def test_a_location_travels_to_a_worker(location):
    there = pickle.loads(pickle.dumps(location))
    there.write("a/b.txt", b"hello")
    assert location.read("a/b.txt") == b"hello"


def test_a_file_is_on_the_disk_before_it_has_its_name(location, monkeypatch):
    """A power cut may otherwise leave the name on an empty file."""
    done = []
    for name in ("fsync", "replace", "link"):
        act = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *given, act=act, name=name: (done.append(name), act(*given)))
    location.write("a.txt", b"1")
    location.create("b.txt", b"1")
    assert done == ["fsync", "replace", "fsync", "link"]


def test_a_failed_write_leaves_the_old_content_and_no_remains(location, monkeypatch):
    location.write("a.txt", b"old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        location.write("a.txt", b"new")
    assert location.read("a.txt") == b"old"
    assert [info.base_name for info in location.files(".")] == ["a.txt"]


class Recording(fs.FileSystemHandler):
    """A local disk behind Python that records its requests."""

    def __init__(self):
        self.local = fs.LocalFileSystem()
        self.calls = []

    def get_type_name(self):
        return "recording"

    def get_file_info_selector(self, selector):
        return self.local.get_file_info(selector)

    def get_file_info(self, paths):
        return self.local.get_file_info(paths)

    def open_output_stream(self, path, metadata):
        self.calls.append(("put", path.rsplit("/", 1)[1]))
        return self.local.open_output_stream(path)

    def move(self, source, target):
        self.calls.append(("move", target.rsplit("/", 1)[1]))
        self.local.move(source, target)

    def open_input_stream(self, path):
        return self.local.open_input_stream(path)

    def create_dir(self, path, recursive):
        self.local.create_dir(path, recursive=recursive)

    def delete_file(self, path):
        self.local.delete_file(path)

    def normalize_path(self, path):
        return path

    def unused(self, *_):
        raise NotImplementedError

    copy_file = delete_dir = delete_dir_contents = delete_root_dir_contents = unused
    open_append_stream = open_input_file = unused


def test_any_filesystem_gets_a_hidden_name_and_a_rename(tmp_path):
    handler = Recording()
    location = Location(fs.PyFileSystem(handler), str(tmp_path), "recording://x")
    location.write("a/b.parquet", b"x")
    (put, hidden), moved = handler.calls
    assert put == "put"
    assert hidden.startswith("_b.parquet")
    assert moved == ("move", "b.parquet")
    assert location.read("a/b.parquet") == b"x"


def test_a_failed_rename_leaves_no_remains_on_any_filesystem(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("no route to host")

    handler = Recording()
    location = Location(fs.PyFileSystem(handler), str(tmp_path), "recording://x", retry=ONCE)
    monkeypatch.setattr(handler, "move", fail)
    with pytest.raises(OSError, match="no route to host"):
        location.write("a/b.parquet", b"x")
    assert location.files("a") == []


def test_an_object_store_gets_one_put(tmp_path, monkeypatch):
    monkeypatch.setattr(filesystem_module, "OBJECT_STORES", {"py::recording"})
    handler = Recording()
    location = Location(fs.PyFileSystem(handler), str(tmp_path), "recording://x")
    location.write("b.parquet", b"x")
    assert handler.calls == [("put", "b.parquet")]


def test_a_kill_in_mid_write_leaves_only_whole_files(location, record):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    for writes in (1, 2, 4):
        child = subprocess.Popen(
            [sys.executable, "-c", ENDLESS_WRITER, location.root],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(writes):
            assert child.stdout.readline() == "written\n"
        child.kill()
        child.wait()
        child.stdout.close()
    assert ResultsStore(location).damaged("digits-1") == []
    assert len([info for info in location.files("epochs/study=digits-1") if info.extension == "parquet"]) >= 7


def test_a_folder_that_appears_while_it_is_listed_is_listed(tmp_path, monkeypatch):
    """Arrow fails if the folder is missing as it lists, and there as it asks whether it is missing."""
    location = open_location(tmp_path, writable=True)
    location.write("trials/a.parquet", b"row")

    class Late:
        asked = 0
        type_name = "late"

        def get_file_info(self, selector):
            Late.asked += 1
            if Late.asked == 1:
                raise FileNotFoundError(f"Cannot list directory {selector.base_dir!r}")
            return location.filesystem.get_file_info(selector)

    found = filesystem_module._entries(Late(), str(tmp_path / "trials"), False)
    assert [info.base_name for info in found] == ["a.parquet"]
