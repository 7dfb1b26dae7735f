"""Machines of a Ray cluster, played by nodes on this one, each started by the line of docs/cluster.md.

What a line cannot have here is replaced: HOST, the ports (others may use the usual ones), and the places of
results. `--block` is added, as the page recommends where others use Ray too: a node ends with its process.
With `Networks`, each node has a network and a name of its own; else all have those of this machine.
"""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.networks import Networks
from tests.documents.blocks import ROOT, blocks_of

PAGE = ROOT / "docs" / "cluster.md"
HEAD = "head"
PATIENCE = 180.0
"""Seconds that a node may take to start, and a sweep to reach a state, on a busy machine."""

# Prints the nodes of a cluster by the name that we gave them, and those on which a placement group lies.
ASK = """
import json, sys
import ray
from ray.util import placement_group_table
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="CRITICAL")
names = {node["NodeID"]: one.removeprefix("is-") for node in ray.nodes() if node["Alive"]
         for one in node["Resources"] if one.startswith("is-")}
groups = [one for one in placement_group_table().values() if one["state"] == "CREATED"]
used = sorted({names[node] for one in groups for node in one["bundles_to_node_id"].values()})
print(json.dumps({"nodes": sorted(names.values()), "used": used}))
"""


def printed(fragment: str) -> str:
    """Return the first line of the page's shell blocks that has a fragment."""
    lines = [line for block in blocks_of(PAGE) if block.language == "" for line in block.text.splitlines()]
    return next(line for line in lines if fragment in line)


@dataclass
class Machines:
    """A cluster that grows by `start` and shrinks by `lose`.

    Attributes:
        ports: ours, by the usual ones that the page prints.
        places: where results lie, by the place that the page prints.
        environment: the variables of every process, the cluster's token among them.
        networks: the networks of the machines; None where they share that of this process.
    """

    ports: Mapping[str, int]
    places: Mapping[str, str]
    environment: dict[str, str]
    folder: Path
    networks: Networks | None = None
    running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """The address of the first machine."""
        return "127.0.0.1" if self.networks is None else self.networks.address(HEAD)

    @property
    def address(self) -> str:
        """The address as `--address` takes it."""
        return f"{self.host}:{self.ports['6379']}"

    def line(self, fragment: str) -> list[str]:
        """Return the page's line with a fragment, as words that can be run here."""
        text = printed(fragment).replace("HOST", self.host)
        for usual, ours in self.ports.items():
            text = re.sub(rf"(?<=[:=]){usual}\b", str(ours), text)
        for usual, ours in self.places.items():
            text = text.replace(usual, shlex.quote(ours))
        return shlex.split(text)

    def start(self, name: str) -> None:
        """Start a machine: the first is the head, the others join it."""
        fragment = "ray start --address=" if self.running else "ray start --head"
        words = [*self.line(fragment), "--block", f"--resources={json.dumps({f'is-{name}': 1})}"]
        if not self.running:
            words += [f"--dashboard-port={self.ports['8265']}"]
            words += [f"--ray-client-server-port={self.ports['10001']}", f"--temp-dir={self.folder}"]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.running[name] = subprocess.Popen(
                self._on(name, words), env=self.environment, stdout=log, stderr=log, start_new_session=True
            )
        self.wait_for(lambda: name in self.seen()["nodes"], f"{name} to join the cluster")

    def lose(self, name: str) -> None:
        """Take a machine away, without a word to the others."""
        process = self.running.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def seen(self) -> dict[str, list[str]]:
        """Return the names of the cluster's nodes, and of those that a placement group uses."""
        done = self.run([sys.executable, "-c", ASK, self.address])
        none: dict[str, list[str]] = {"nodes": [], "used": []}
        return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else none

    def run(
        self, words: list[str], *, outside: bool = False, **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end: on the first machine, or on one that is not in the cluster."""
        environment = self.environment | variables
        return subprocess.run(
            words if outside else self._on(HEAD, words),
            env=environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def begin(self, words: list[str], said: Any) -> "subprocess.Popen[bytes]":
        """Begin a command on the first machine; what it says goes to the file `said`."""
        return subprocess.Popen(
            self._on(HEAD, words), env=self.environment, cwd=self.folder, stdout=said, stderr=said
        )

    def _on(self, name: str, words: list[str]) -> list[str]:
        """Return the words that run a command on a machine."""
        if self.networks is None:
            return words
        self.networks.address(name)
        return [*self.networks.inside(name), *words]

    def wait_for(self, state: Callable[[], bool], what: str) -> None:
        """Return once a state is reached.

        Raises:
            TimeoutError: it was not within `PATIENCE` seconds; the logs of the machines are added.
        """
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if state():
                return
        logs = "\n".join(log.read_text(errors="replace")[-2000:] for log in self.folder.glob("*.log"))
        raise TimeoutError(f"waited {PATIENCE:.0f} s for {what}\n{logs}")


@contextmanager
def machines(places: Mapping[str, str], networks: Networks | None = None) -> Iterator[Machines]:
    """Yield a cluster without machines; those that are started in the block end with it."""
    usual = ("6379", "8265", "10001")
    # A path of Ray's sockets has at most 107 bytes, which is less than a folder of pytest's leaves.
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        code = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        environment = {**os.environ, **_token(), "PATH": path, "PYTHONPATH": code, "COLUMNS": "200"}
        ports = dict(zip(usual, _free_ports(3), strict=True))
        there = Machines(ports, places, environment, Path(folder), networks)
        try:
            yield there
        finally:
            for name in reversed(list(there.running)):
                there.lose(name)


def _token() -> dict[str, str]:
    """Return the variables that the page's first line sets."""
    shell = f"{printed('head -c 32 /dev/urandom')}; env"
    told = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True).stdout
    return dict(line.split("=", 1) for line in told.splitlines() if line.startswith("RAY_AUTH_"))


def _free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()
