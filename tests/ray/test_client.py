"""Commands that run as a whole in a cluster, through Ray's client."""

import gc
import json
import os
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ray.cluster_utils import Cluster
from typer.main import get_command

from contrasweep.tuning.cli import app
from contrasweep.tuning.cli.command_line import TYPED
from contrasweep.tuning.cli.remote_command import check_places, named_files, with_files, without_address
from contrasweep.tuning.errors import InputError, SweepFailed
from contrasweep.tuning.ray import client
from contrasweep.tuning.ray.client import _follow, name_there, run_there
from contrasweep.tuning.ray.cluster import our_code
from contrasweep.tuning.store import ResultsStore
from tests.search_path import search_path


@pytest.mark.parametrize("given", [["--address", "ray://h:1"], ["--address=ray://h:1"]])
def test_the_address_stays_behind(given: list[str]) -> None:
    assert without_address(["sweep", "infonce", *given, "--name", "x"]) == ["sweep", "infonce", "--name", "x"]


def test_files_that_the_command_names_go_along_and_other_words_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = tmp_path / "space.yaml"
    space.write_text("")
    monkeypatch.chdir(tmp_path)
    given = {
        "space": Path("./space.yaml"),
        "name": "space.yaml",
        "json": True,
        "sources": ["study", str(space)],
    }
    files = named_files(given)
    assert files == [Path("space.yaml"), space]
    names = {file: f"there/{place}" for place, file in enumerate(files)}
    typed = [
        "--space",
        "./space.yaml",
        "--space=space.yaml",
        "--name",
        "space.yaml",
        "--json",
        str(space),
        "study",
    ]
    there = ["--space", "there/0", "--space=there/0", "--name", "space.yaml", "--json", "there/1", "study"]
    assert with_files(typed, names, given) == there


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("results", "results", "--results results: .*full path that its nodes see, or s3://"),
        ("data_root", Path("data"), "--data-root data: .*full path"),
        ("storage", "sqlite:///search.db", "--storage sqlite:///search.db: .*full path"),
        ("figure", Path("/tmp/x.png"), "--figure .*--no-run"),
    ],
)
def test_places_that_are_another_in_the_cluster_are_refused(
    option: str, value: str | Path, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        check_places({option: value})


def test_places_that_the_cluster_sees_are_taken(tmp_path: Path) -> None:
    check_places({"storage": "sqlite:////shared/search.db"})
    check_places({"results": "s3://bucket/x", "data_root": tmp_path, "space": None, "name": "x"})


@pytest.mark.parametrize("command", ["sweep", "run", "table"])
def test_a_client_address_sends_the_command_and_runs_nothing_here(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[list[str]] = []

    def instead(
        address: str, arguments: list[str], files: list[Path], environment: dict[str, str], show: object
    ) -> int:
        sent.append([address, *arguments])
        assert environment[TYPED] == shlex.join(["contrasweep", *typed])
        return 3

    monkeypatch.setattr("contrasweep.tuning.ray.client.run_there", instead)
    typed = [command, "infonce", "--results", str(tmp_path), "--address", "ray://head:10001"]
    monkeypatch.setattr("sys.argv", ["contrasweep", *typed])
    with pytest.raises(SystemExit) as left:
        get_command(app)(typed)
    assert left.value.code == 3
    assert sent == [["ray://head:10001", *typed[:-2]]]
    assert list(tmp_path.iterdir()) == []


def test_nobody_at_a_client_address_says_what_to_start() -> None:
    with pytest.raises(
        InputError, match=r"no Ray cluster answers at ray://127\.0\.0\.1:9 .*ray start --head"
    ):
        run_there("ray://127.0.0.1:9", ["sweep"], [], {}, lambda stream, text: None)


def test_what_an_earlier_sweep_left_is_collected_before_the_client_connects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Objects of Ray Tune ask Ray a question when they are collected; Ray's client would never answer."""
    calls: list[str] = []

    class Left:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            calls.append("collected")

    def start_ray(*_: Any, **__: Any) -> None:
        calls.append("init")
        raise ConnectionError

    monkeypatch.setattr(client, "refuse_silence", lambda address: None)
    monkeypatch.setattr(client, "start_ray", start_ray)
    gc.disable()
    try:
        Left()
        with pytest.raises(SweepFailed):
            run_there("ray://127.0.0.1:9", ["sweep"], [], {}, lambda stream, text: None)
    finally:
        gc.enable()
    assert calls == ["collected", "init"]


@pytest.fixture
def client_address() -> Iterator[str]:
    """A node of two cores that Ray's client reaches, in the mode of authentication that this process has."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    head = {"num_cpus": 2, "include_dashboard": False, "ray_client_server_port": port}
    running = Cluster(initialize_head=True, head_node_args=head)
    try:
        _wait_for(port)
        yield f"ray://127.0.0.1:{port}"
    finally:
        running.shutdown()


def _wait_for(port: int, seconds: float = 60.0) -> None:
    """The client server comes up after the node."""
    end, pause = time.monotonic() + seconds, threading.Event()
    while time.monotonic() < end:
        with socket.socket() as asking:
            if asking.connect_ex(("127.0.0.1", port)) == 0:
                return
        pause.wait(0.1)
    raise TimeoutError(f"nothing listens on port {port}")


def test_a_sweep_runs_in_the_cluster_is_interrupted_from_outside_and_goes_on(
    client_address: str, tmp_path: Path
) -> None:
    """The command's output (JSON apart from progress) and its exit code come back."""
    space, results = tmp_path / "space.yaml", tmp_path / "results"
    space.write_text("temperature: {log: [0.1, 1.0], default: 0.2}\n")
    said: dict[str, bytes] = {"stdout": b"", "stderr": b""}

    def listen(stream: str, text: bytes) -> None:
        said[stream] += text
        if b"/2 trials" in text and not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt

    interrupted: list[bool] = []
    sweep = ["sweep", "infonce", "--name", "there", "--results", str(results), "--epochs", "2", "--json"]
    sweep += ["--concurrency", "1"]
    quick = ["--set", "probes.max_steps=5"]
    asked = [*sweep, "--space", name_there(0, space), "--trials", "2", *quick]
    assert run_there(client_address, asked, [space], {TYPED: "as typed"}, listen) == 130, said
    assert b"--resume" in said["stderr"]
    assert b"goes on" in said["stderr"]
    said["stdout"] = b""
    assert run_there(client_address, [*sweep, "--resume"], [], {}, listen) == 0, said
    assert json.loads(said["stdout"])["best"]
    store = ResultsStore(results)
    assert len(store.trials("there")) == 2
    assert store.study("there").command == "as typed"


def test_ctrl_c_while_waiting_loses_nothing_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """An abandoned read would take the next output, and the read after it would wait for ever."""
    asked: list[int] = []
    said: list[tuple[str, bytes] | int] = [("stdout", b"a"), ("stderr", b"Interrupted."), 130]

    class Read:
        def remote(self) -> int:
            asked.append(len(asked))
            return asked[-1]

    class Interrupt:
        def remote(self) -> str:
            return "interrupt"

    class Running:
        read, interrupt = Read(), Interrupt()

    waits = iter([None, KeyboardInterrupt(), None, None, None])

    def get(reference: int | str) -> object:
        if reference == "interrupt":
            return None
        wait = next(waits)
        if wait is not None:
            raise wait
        return said[int(reference)]

    monkeypatch.setattr("contrasweep.tuning.ray.client.ray.get", get)
    heard: list[bytes] = []
    assert _follow(Running(), lambda stream, text: heard.append(text)) == 130
    assert heard == [b"a", b"Interrupted."]
    assert asked == [0, 1, 2]


def test_the_server_of_the_client_imports_no_torch_for_a_command() -> None:
    """It imports in a thread, where torch's libraries have failed to load; the server died."""
    code = "import sys; import contrasweep.tuning.ray.command; sys.exit('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": search_path(our_code().parent)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
