import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest

from contrasweep.tuning.store import Heartbeat, Location, ResultsStore, StoreError, StudyBusy, compact
from contrasweep.tuning.store import heartbeat as heartbeat_module
from contrasweep.tuning.store.filesystem import Retry
from contrasweep.tuning.store.heartbeat import (
    STALE_SECONDS,
    HeartbeatRecord,
    living_driver,
    read_heartbeat,
    record_interruptions,
    seems_alive,
)
from contrasweep.tuning.store.removal import delete_record, delete_study


def beat_of(pid: int, machine: str | None, time: float = 1000.0, state: str = "running") -> HeartbeatRecord:
    return HeartbeatRecord(driver="d", host="h", machine=machine, pid=pid, time=time, state=state)


def dead_process() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_without_a_heartbeat_there_is_no_driver():
    assert not seems_alive(None, 0.0)


@pytest.mark.parametrize(
    ("age", "alive"), [(0.0, True), (STALE_SECONDS, True), (STALE_SECONDS + 1, False), (-5.0, True)]
)
def test_to_readers_a_driver_elsewhere_seems_alive_by_its_last_beat(age, alive):
    assert seems_alive(beat_of(1, "elsewhere"), 1000.0 + age) is alive


def test_a_driver_that_left_is_not_alive():
    assert not seems_alive(beat_of(os.getpid(), "elsewhere", state="ended"), 1000.0)
    assert not seems_alive(beat_of(os.getpid(), "elsewhere", state="interrupted"), 1000.0)


def test_a_driver_killed_on_this_machine_is_known_to_be_dead_at_once(monkeypatch):
    monkeypatch.setattr(heartbeat_module, "_machine", lambda: "this one")
    pid = dead_process()
    assert not seems_alive(beat_of(pid, "this one"), 1000.0)
    assert seems_alive(beat_of(pid, "another"), 1000.0)
    assert seems_alive(beat_of(os.getppid(), "this one"), 1000.0)
    assert not seems_alive(beat_of(os.getpid(), "this one"), 1000.0), "this process drives nothing"


def test_a_process_of_another_user_of_this_machine_is_alive(monkeypatch):
    def refuse(*_):
        raise PermissionError("not yours")

    monkeypatch.setattr(heartbeat_module, "_machine", lambda: "this one")
    monkeypatch.setattr(os, "kill", refuse)
    assert seems_alive(beat_of(os.getppid(), "this one"), 1000.0)


def test_the_state_follows_the_driver(location, record):
    with Heartbeat(location, "digits-1"):
        inside = read_heartbeat(location, "digits-1")
        assert inside.state == "running"
        assert inside.pid == os.getpid()
        record_interruptions()
        assert read_heartbeat(location, "digits-1").state == "interrupted"
    record_interruptions()
    assert read_heartbeat(location, "digits-1").state == "ended", "this process drives nothing any more"
    with pytest.raises(KeyboardInterrupt), Heartbeat(location, "digits-1"):
        raise KeyboardInterrupt
    assert read_heartbeat(location, "digits-1").state == "interrupted"


def test_it_beats_by_itself(location, record):
    beaten = threading.Event()
    times = iter(range(1000, 100_000))

    def now() -> float:
        time = float(next(times))
        if time > 1003:
            beaten.set()
        return time

    with Heartbeat(location, "digits-1", interval=0.001, now=now):
        assert beaten.wait(timeout=30)


def test_a_failed_write_does_not_end_the_beating(location, record, monkeypatch, caplog):
    recovered = threading.Event()
    with Heartbeat(location, "digits-1", interval=0.001) as heartbeat:
        write = heartbeat._write
        failures = iter([True])

        def unreliable(state):
            if next(failures, False):
                raise OSError("no route to host")
            write(state)
            recovered.set()

        monkeypatch.setattr(heartbeat, "_write", unreliable)
        assert recovered.wait(timeout=30)
    assert "no route to host" in caplog.text


def test_a_second_driver_is_refused_while_the_first_is_alive(location, record):
    with Heartbeat(location, "digits-1"):
        with pytest.raises(StoreError, match=rf"run by process {os.getpid()} on .*; stop it first"):
            Heartbeat(location, "digits-1").__enter__()
        assert read_heartbeat(location, "digits-1").state == "running"


class Elsewhere:
    """A driver on another machine, whose clock is wrong; it acts in each second that we wait."""

    def __init__(self, location: Location, ahead: float, states: list[str]) -> None:
        """`states`: what it writes in each second; an empty one is silence."""
        self.location = replace(location, retry=Retry(waits=(), wait=self._second))
        self.waited: list[float] = []
        self._time, self._states = time.time() + ahead, iter(states)
        self._write("running")

    def _second(self, seconds: float) -> None:
        self.waited.append(seconds)
        self._time += seconds
        if state := next(self._states, ""):
            self._write(state)

    def _write(self, state: str) -> None:
        beat = beat_of(1, "elsewhere", self._time, state)
        self.location.write("studies/digits-1.heartbeat", beat.model_dump_json().encode())


CLOCKS = pytest.mark.parametrize("ahead", [-3600.0, -40.0, 0.0, 40.0, 3600.0])


@CLOCKS
def test_a_driver_elsewhere_that_beats_is_alive_whatever_its_clock(location, record, ahead):
    other = Elsewhere(location, ahead, ["", "", "running"])
    with pytest.raises(StudyBusy, match="run by process 1 on h; stop it first"):
        Heartbeat(other.location, "digits-1").__enter__()
    assert len(other.waited) == 3


@CLOCKS
def test_a_silent_driver_elsewhere_costs_the_same_seconds_whatever_its_clock(location, record, ahead, caplog):
    other = Elsewhere(location, ahead, [])
    with Heartbeat(other.location, "digits-1", interval=3600):
        assert read_heartbeat(location, "digits-1").pid == os.getpid()
    assert sum(other.waited) == STALE_SECONDS
    assert "Process 1 on h has not recorded that it ended study digits-1: for up to 30 s" in caplog.text


def test_a_driver_elsewhere_whose_clock_is_set_back_is_alive(location, record):
    other = Elsewhere(location, 0.0, ["running"])
    other._time -= 3600
    assert living_driver(other.location, "digits-1") is not None


def test_a_driver_elsewhere_that_ends_meanwhile_is_not_waited_for(location, record):
    other = Elsewhere(location, 0.0, ["", "ended"])
    assert living_driver(other.location, "digits-1") is None
    assert len(other.waited) == 2


def test_merging_and_deleting_leave_the_study_of_a_driver_elsewhere_alone(location, record):
    for act in (compact, delete_study):
        with pytest.raises(StoreError, match="is being run"):
            act(Elsewhere(location, -3600.0, ["running"]).location, "digits-1")
    assert ResultsStore(location).study("digits-1") == record


def test_whether_a_driver_of_this_machine_lives_is_known_without_waiting(location, record, monkeypatch):
    monkeypatch.setattr(heartbeat_module, "_machine", lambda: "this one")
    at_once = replace(location, retry=Retry(wait=lambda _: pytest.fail("waited")))
    for pid, alive in ((dead_process(), False), (os.getppid(), True)):
        beat = beat_of(pid, "this one", time.time())
        location.write("studies/digits-1.heartbeat", beat.model_dump_json().encode())
        assert (living_driver(at_once, "digits-1") is not None) is alive


def test_a_driver_that_was_silent_too_long_learns_that_it_was_replaced(location, record):
    clock = [1000.0]
    with Heartbeat(location, "digits-1", interval=3600, now=lambda: clock[0]) as first:
        clock[0] += STALE_SECONDS + 1
        with Heartbeat(location, "digits-1", interval=3600, now=lambda: clock[0]) as second:
            first.beat()
            assert first.superseded
            second.beat()
            assert not second.superseded
    # The first one left last, and did not claim the end of a study that is no longer its own.
    assert read_heartbeat(location, "digits-1").driver == second._driver


def test_a_driver_that_was_silent_while_its_study_was_deleted_stops(location, record, caplog, monkeypatch):
    def away(*_):
        raise OSError("no route to host")

    with Heartbeat(location, record.name, interval=3600) as driver:
        with monkeypatch.context() as patch:
            patch.setattr(Location, "read", away)
            assert driver.in_charge()
        delete_record(location, record.name)
        driver.beat()
        assert not driver.in_charge()
        with monkeypatch.context() as patch:
            patch.setattr(Location, "read", away)
            assert not driver.in_charge()
    assert f"Study {record.name} was deleted." in caplog.text
    assert location.files("studies") == [], "it leaves nothing behind"


def test_a_results_folder_that_is_away_for_a_moment_is_not_a_deleted_study(location, record):
    with Heartbeat(location, record.name, interval=3600) as driver:
        location.delete_folder("studies")
        assert driver.in_charge()


def test_a_damaged_heartbeat_counts_as_none(location, record, caplog):
    location.write("studies/digits-1.heartbeat", b"{")
    assert read_heartbeat(location, "digits-1") is None
    assert "digits-1.heartbeat" in caplog.text


@pytest.mark.parametrize(
    "field",
    [
        {"pid": 2**31},
        {"pid": 0},
        {"pid": -1},
        {"pid": 10**400},
        {"pid": "7"},
        {"pid": True},
        {"time": float("nan")},
        {"time": float("inf")},
        {"time": None},
        {"state": "asleep"},
        {"driver": 1},
    ],
)
def test_a_heartbeat_with_an_impossible_field_counts_as_none(location, record, field, caplog):
    beat = {**beat_of(os.getpid(), None).model_dump(), **field}
    location.write("studies/digits-1.heartbeat", json.dumps(beat).encode())
    assert read_heartbeat(location, "digits-1") is None
    assert ResultsStore(location).state("digits-1") == "interrupted"
    assert "digits-1.heartbeat is damaged" in caplog.text
    assert "\n" not in caplog.messages[0]
    with Heartbeat(location, "digits-1"):
        assert read_heartbeat(location, "digits-1").state == "running"


@pytest.mark.parametrize("ahead", [4e9, 1e300])
def test_a_beat_from_a_far_future_is_no_life(ahead):
    assert not seems_alive(beat_of(1, "elsewhere", time=ahead), 1000.0)


def test_a_folder_in_place_of_a_heartbeat_is_none_to_readers_and_stops_a_driver(location, record):
    location.write("studies/digits-1.heartbeat/x", b"")
    patient = replace(location, retry=Retry(wait=lambda _: pytest.fail("tried again")))
    assert ResultsStore(patient).state("digits-1") == "interrupted"
    with pytest.raises(StoreError, match=r"digits-1\.heartbeat is a folder, where a file belongs"):
        Heartbeat(patient, "digits-1").__enter__()
