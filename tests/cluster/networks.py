"""Networks for the machines of a test: each has an address and a name of its own; they meet on a bridge.

They are network namespaces of Linux, which only root may make. The own name of each machine stands for a
loopback address there, as in Debian's /etc/hosts.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_TOOLS = ("ip", "unshare", "hostname")
_HOSTS = Path("/etc/netns")
"""`ip netns exec` shows `/etc/netns/NAME/hosts` to its command as `/etc/hosts`."""

_ENTER = 'hostname "$0" && exec "$@"'
_PREFIX = f"c{os.getpid()}"
"""How the names of our networks begin: those of another process begin otherwise, and have other addresses."""


def lacking() -> str | None:
    """Return why there can be no such networks here; None if there can."""
    if os.geteuid() != 0:
        return "only root may make networks"
    absent = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if absent:
        return f"needs {', '.join(absent)}"
    probe = f"{_PREFIX}probe"
    if subprocess.run(["ip", "netns", "add", probe], capture_output=True, check=False).returncode != 0:
        return "this container may not make networks"
    _ip("netns", "del", probe)
    return None


@dataclass
class Networks:
    """The networks of machines that were named so far, in the order of their addresses."""

    bridge: str = _PREFIX
    subnet: str = f"10.{100 + os.getpid() % 100}.{os.getpid() // 100 % 250}"
    names: list[str] = field(default_factory=list)

    @property
    def outside(self) -> str:
        """The address of this process on the bridge, where every machine reaches it."""
        return f"{self.subnet}.1"

    def address(self, name: str) -> str:
        """Return the address of a machine; its network is made on the first call."""
        if name not in self.names:
            self._add(name)
        return f"{self.subnet}.{self.names.index(name) + 2}"

    def inside(self, name: str) -> list[str]:
        """Return the words that run a command, which follows them, on a machine."""
        return ["ip", "netns", "exec", f"{self.bridge}{name}", "unshare", "--uts", "sh", "-c", _ENTER, name]

    def cut_off(self, name: str) -> None:
        """Take a machine from the bridge: it goes on, but nobody reaches it, and it reaches nobody."""
        _ip("link", "set", self._port(name), "down")

    def _add(self, name: str) -> None:
        self.names.append(name)
        own, there = f"{self.bridge}{name}", self._port(name)
        hosts = _HOSTS / own / "hosts"
        hosts.parent.mkdir(parents=True, exist_ok=True)
        hosts.write_text(f"127.0.0.1 localhost\n127.0.1.1 {name}\n")
        _ip("netns", "add", own)
        _ip("link", "add", there, "type", "veth", "peer", "name", "eth0", "netns", own)
        _ip("link", "set", there, "master", self.bridge, "up")
        for words in (
            ("addr", "add", f"{self.address(name)}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("link", "set", "lo", "up"),
            ("route", "add", "default", "via", self.outside),
        ):
            _ip("-netns", own, *words)

    def _port(self, name: str) -> str:
        return f"{self.bridge}v{self.names.index(name)}"


@contextmanager
def networks() -> Iterator[Networks]:
    """Yield a bridge without machines; the networks that are added in the block end with it."""
    made = Networks()
    # Without an address of its own, a bridge takes the lowest of its ports'. A new machine may change it, and
    # the others then write to the old one for some seconds.
    _ip("link", "add", made.bridge, "address", "02:00:00:00:00:01", "type", "bridge")
    try:
        _ip("addr", "add", f"{made.outside}/24", "dev", made.bridge)
        _ip("link", "set", made.bridge, "up")
        yield made
    finally:
        for name in made.names:
            own = f"{made.bridge}{name}"
            subprocess.run(["ip", "netns", "del", own], capture_output=True, check=False)
            shutil.rmtree(_HOSTS / own, ignore_errors=True)
        _ip("link", "del", made.bridge)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], capture_output=True, text=True, check=True)
