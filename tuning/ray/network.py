"""The network on which the workers of a group meet: that of Ray, which all its nodes reach."""

import fcntl
import os
import socket
import struct

import ray

GLOO_INTERFACE = "GLOO_SOCKET_IFNAME"
"""The variable that tells gloo which network interface to use."""

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
