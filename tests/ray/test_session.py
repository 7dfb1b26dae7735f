"""Ray is started again on a machine that is too busy at first."""

import os
import signal
import tempfile
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from contrasweep.tuning.errors import SweepFailed
from contrasweep.tuning.ray import cluster
from contrasweep.tuning.ray.cluster import STARTS, environment


@pytest.fixture
def ray_that_fails(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A fake of Ray that records the calls; `init` fails as long as `failures` are left."""
    calls: list[str] = []

    def init(**_: Any) -> None:
        calls.append("init")
        if "failure" in calls:
            calls.remove("failure")
            raise Exception("The current node timed out during startup.")

    monkeypatch.setattr(cluster.ray, "init", init)
    monkeypatch.setattr(cluster.ray, "nodes", list)
    monkeypatch.setattr(cluster.ray, "shutdown", lambda: calls.append("shutdown"))
    monkeypatch.setattr(cluster, "stopping_without_ray", nullcontext)
    return calls


def test_ray_gets_another_chance_to_start(ray_that_fails: list[str]) -> None:
    ray_that_fails += ["failure"] * 2
    with cluster.local_ray(1):
        assert ray_that_fails == ["init", "shutdown", "init", "shutdown", "init"]


def test_a_ray_that_does_not_start_is_said_so(ray_that_fails: list[str]) -> None:
    ray_that_fails += ["failure"] * STARTS
    with pytest.raises(SweepFailed, match=r"tried 3 times: The current node timed out"), cluster.local_ray(1):
        pass


@pytest.mark.parametrize("call", ["init", "nodes"])
def test_ctrl_c_waits_until_ray_has_started_and_its_state_can_be_read(
    ray_that_fails: list[str], monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """An object of Ray that is thrown away before it has connected never ends: the process would hang."""

    def interrupted(**_: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        ray_that_fails.append(f"end of {call}")

    monkeypatch.setattr(cluster.ray, call, interrupted)
    # In the background of a script, the tests would start with SIGINT ignored, and what is ignored stays so.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), cluster.local_ray(1):
            ray_that_fails.append("block")
    finally:
        signal.signal(signal.SIGINT, before)
    assert ray_that_fails[-2:] == [f"end of {call}", "shutdown"]
    assert "block" not in ray_that_fails


def test_variables_are_set_for_a_block_and_those_of_the_user_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THE_USER", "theirs")
    monkeypatch.delenv("OF_OURS", raising=False)
    with environment({"OF_THE_USER": "ours", "OF_OURS": "ours"}):
        assert (os.environ["OF_THE_USER"], os.environ["OF_OURS"]) == ("theirs", "ours")
    assert os.environ["OF_THE_USER"] == "theirs"
    assert "OF_OURS" not in os.environ


def test_a_full_disk_is_told_before_ray_starts(
    ray_that_fails: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster.shutil, "disk_usage", lambda folder: SimpleNamespace(free=1_000_000))
    with pytest.raises(SweepFailed, match=r"has 1 MB left, and Ray needs 64; .*--tmp"), cluster.local_ray(1):
        pass
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", list)
    with pytest.raises(SweepFailed, match="no temporary file can be written"), cluster.local_ray(1):
        pass
    assert not ray_that_fails
