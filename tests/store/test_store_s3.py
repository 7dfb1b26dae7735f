"""The store on S3, with a real server on loopback: its requests, and the errors for a bad bucket."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

pytest.importorskip("moto")
pytest.importorskip("flask")

from contrasweep.tuning.store import (
    ResultsStore,
    StoreError,
    StudyRecord,
    TrialInfo,
    TrialWriter,
    compact,
    open_location,
    save_study,
)
from contrasweep.tuning.store.filesystem import PROBE_BYTES, Retry, StoreRefuses
from tests.store.s3_server import Server, s3_server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with s3_server() as running:
        running.make_bucket("bucket")
        running.make_bucket("foreign")
        yield running


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch, server: Server) -> Iterator[None]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    yield
    server.check_rights(False)


def test_written_files_are_read_merged_and_deleted(
    server: Server, record: StudyRecord, info: Callable[..., TrialInfo]
) -> None:
    location = open_location(server.uri("bucket/results"), writable=True)
    save_study(location, record)
    for trial in range(3):
        writer = TrialWriter(location, record, info(trial, kernel="rbf"))
        writer.start()
        writer.add_epoch(0, {"val.accuracy": 0.5}, seconds=1.0, train_seconds=0.0)
        writer.finish("completed", {"val.accuracy": 0.5 + trial / 10})
    store = ResultsStore(server.uri("bucket/results"))
    before = store.trials(record.name), store.epochs(record.name)
    assert before[0]["metric.val.accuracy"].to_pylist() == [0.5, 0.6, 0.7]
    done = compact(location, record.name)
    assert (done.trials, done.epochs, done.removed) == (3, 3, 6)
    names = [file.base_name for file in location.files(f"trials/study={record.name}")]
    assert len([name for name in names if name.endswith(".parquet")]) == 1
    assert (store.trials(record.name), store.epochs(record.name)) == before
    with pytest.raises(FileNotFoundError):
        location.read("checkpoints/none.pt")
    location.delete("checkpoints/none.pt")


def test_a_file_is_one_request_and_one_object(server: Server) -> None:
    location = open_location(server.uri("bucket/requests"))
    server.counts()
    location.write("a/checkpoint.pt", b"x" * 2_000_000)
    assert server.counts() == {"PUT": 1}
    assert location.read("a/checkpoint.pt") == b"x" * 2_000_000


@pytest.mark.parametrize("writable", [True, False])
def test_a_bucket_that_is_not_there_is_named(server: Server, writable: bool) -> None:
    with pytest.raises(StoreError, match="there is no bucket nowhere"):
        open_location(server.uri("nowhere/results"), writable=writable)


def test_a_missing_right_is_reported_before_any_work(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    key, secret = server.make_user("bucket")
    server.check_rights()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    open_location(server.uri("bucket/own"), writable=True)
    with pytest.raises(StoreError, match=r"foreign.*lack a right, or none were found.*ACCESS_DENIED"):
        open_location(server.uri("foreign/results"), writable=True)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(StoreError, match="lack a right"):
        open_location(server.uri("bucket/own"), writable=True)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(StoreError, match="lack a right, or none were found"):
        open_location(server.uri("bucket/own"), writable=True)


def test_a_right_that_is_lost_is_told_at_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    open_location(server.uri("bucket/results")).write("row", bytes(PROBE_BYTES))
    key, secret = server.make_user("foreign")
    server.check_rights()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    patient = Retry(wait=lambda _: pytest.fail("tried again"))
    location = replace(open_location(server.uri("foreign/results")), root="bucket/results", retry=patient)
    for act in (
        lambda: location.read("row"),
        lambda: location.write("row", b""),
        lambda: location.files("."),
    ):
        with pytest.raises(StoreRefuses, match=r"permits no .*credentials .* lack a right"):
            act()


def test_nobody_at_the_address_is_told_within_the_tries_of_one_request() -> None:
    """The store's retries would take a minute; AWS's library tries its first request for 6 s."""
    failed: list[StoreError] = []

    def open_nothing() -> None:
        with pytest.raises(StoreError, match="no server answers there") as found:
            open_location(Server(9).uri("bucket/results"), writable=True)
        failed.append(found.value)

    thread = threading.Thread(target=open_nothing, daemon=True)
    thread.start()
    thread.join(20)
    assert failed, "still trying after 20 s"
