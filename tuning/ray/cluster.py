"""A Ray cluster that runs already: finding it, what it has, and sending our code to its nodes."""

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray

import contrasweep
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.machine import CLIENT_SCHEME, Machine

AUTO = "auto"
ANSWER_SECONDS = 5.0
"""How long an address may take to answer; Ray itself would try for minutes."""

START = "`ray start --head --port=6379` starts one, `ray start --address=HOST:6379` adds a machine to it"
# A job's own working folder would forbid ours, though it is ours that holds the code of this driver.
OVERRIDE = "RAY_OVERRIDE_JOB_RUNTIME_ENV"


def cluster_at(address: str) -> Machine:
    """Return what the nodes of a cluster have; `address` is `auto` or `HOST:PORT`.

    Raises:
        InputError: nobody answers there, or it is none of the forms of an address.
        RuntimeError: this process is connected to a Ray already.
    """
    with connect(address):
        nodes = [node["Resources"] for node in live_nodes()]
    cpus = tuple(int(node.get("CPU", 0)) for node in nodes)
    gpus = tuple(float(node.get("GPU", 0.0)) for node in nodes)
    return Machine(cpus, gpus, address)


def live_nodes() -> list[dict[str, Any]]:
    """Return what Ray says of each node of the cluster that this process is connected to."""
    found: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return [node for node in found if node["Alive"]]


@contextmanager
def connect(address: str) -> Iterator[None]:
    """Be connected to a cluster while inside; its nodes run this process's contrasweep, whatever they have.

    Raises:
        InputError, RuntimeError: see `cluster_at`.
    """
    if ray.is_initialized():
        raise RuntimeError("this process is connected to a Ray already; call ray.shutdown() first")
    _check_form(address)
    if address != AUTO:
        refuse_silence(address)
    before = os.environ.get(OVERRIDE)
    os.environ[OVERRIDE] = "1"
    try:
        _connect(address, our_code())
        yield
    finally:
        ray.shutdown()
        if before is None:
            os.environ.pop(OVERRIDE)
        else:
            os.environ[OVERRIDE] = before


def our_code() -> Path:
    """Return the folder of this process's contrasweep, which Ray sends to the nodes (it follows links)."""
    return Path(contrasweep.__file__).parent


def _connect(address: str, code: Path) -> None:
    try:
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level=logging.CRITICAL,
            # Before what is installed on the nodes.
            runtime_env={"py_modules": [str(code)]},
        )
    except Exception as error:  # Ray raises no narrower one
        ray.shutdown()
        where = "this machine" if address == AUTO else address
        raise InputError(f"no Ray cluster can be used at {where}: {error}. {START}") from error


def _check_form(address: str) -> None:
    if address.startswith(CLIENT_SCHEME):
        raise InputError(
            f"{address}: Ray's client cannot carry a sweep, whose driver must be in the cluster; "
            "`contrasweep sweep ... --address ray://...` runs the whole command there (docs/cluster.md)"
        )
    if address != AUTO:
        _host_and_port(address)


def refuse_silence(address: str) -> None:
    """Refuse HOST:PORT or ray://HOST:PORT if nobody answers there.

    Raises:
        InputError: nobody does, or it has another form.
    """
    try:
        with socket.create_connection(_host_and_port(address), timeout=ANSWER_SECONDS):
            return
    except OSError as error:
        raise InputError(f"no Ray cluster answers at {address} ({error}). {START}") from error


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.removeprefix(CLIENT_SCHEME).rpartition(":")
    if not (host and port.isdecimal() and int(port) < 2**16):
        raise InputError(f"--address takes auto, HOST:PORT or ray://HOST:PORT, given {address!r}")
    return host.strip("[]"), int(port)
