"""The network on which the workers of a group meet: that of Ray, on which its nodes know each other."""

import fcntl
import os
import socket
import struct
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Timer
from typing import Any

import ray

GLOO_INTERFACE = "GLOO_SOCKET_IFNAME"
"""The variable that tells gloo which network interface to use."""

DOOR_SECONDS = 300.0
"""How long a worker can be reached at the port of `open_door`: far longer than a check takes."""

REACH_SECONDS = 10.0
"""How long a connection to another node may take."""

_ASK_ADDRESS = 0x8915
"""Linux's SIOCGIFADDR: the IPv4 address of an interface."""


def meet_on_rays_network() -> None:
    """Let gloo use the interface of this node's address in Ray, unless `GLOO_SOCKET_IFNAME` is set.

    Gloo itself takes the address of the machine's own name. On many machines that is a loopback address
    (`127.0.1.1` in Debian's /etc/hosts), or the name has none: then workers on two nodes never meet.
    """
    if GLOO_INTERFACE not in os.environ:
        interface = interface_of(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]
        if interface is not None:
            os.environ[GLOO_INTERFACE] = interface


def interface_of(address: str) -> str | None:
    """Return the network interface of this machine whose first IPv4 address is `address`; None if none is."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            try:
                told = fcntl.ioctl(asking, _ASK_ADDRESS, struct.pack("256s", name.encode()[:15]))
            except OSError:
                continue  # It has no IPv4 address.
            if socket.inet_ntoa(told[20:24]) == address:
                return name
    return None


def open_door() -> tuple[str, int]:
    """Return this node's address and a port at which others can reach this process for `DOOR_SECONDS`."""
    host: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
    door = socket.create_server(("", 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    closing = Timer(DOOR_SECONDS, door.close)
    closing.daemon = True
    closing.start()
    port: int = door.getsockname()[1]
    return host, port


def unreached(doors: Sequence[tuple[str, int]]) -> list[tuple[str, str]]:
    """Return from where to where there is no connection: from this node to a node of one of the `doors`."""
    here: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
    others = {host: port for host, port in doors if host != here}
    if not others:
        return []
    with ThreadPoolExecutor(len(others)) as pool:
        reached = pool.map(_reaches, others.items())
        return [(here, host) for host, is_reached in zip(others, reached, strict=True) if not is_reached]


def _reaches(door: tuple[str, int]) -> bool:
    try:
        socket.create_connection(door, timeout=REACH_SECONDS).close()
    except OSError:
        return False
    return True


def apart_in_words(execute: Callable[..., Sequence[Any]]) -> str | None:
    """Return the message about what the workers of a group do not reach; None if they reach each other.

    Without this message, the workers would wait for ten minutes, and then name a port.

    Args:
        execute: calls a function with arguments on all workers, and returns what each returns.
    """
    doors = execute(open_door)
    pairs = sorted({pair for own in execute(unreached, doors) for pair in own})
    if not pairs:
        return None
    told = ", ".join(f"{there} from {here}" for here, there in pairs)
    return (
        f"the workers of a trial do not reach each other: no connection to {told}. The nodes must reach each "
        "other on all ports"
    )
