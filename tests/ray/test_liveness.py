"""A driver leaves its work when nothing answers any more where Ray's own processes listened."""

import os
import signal
import socket
import threading
from collections.abc import Iterator, Mapping

import pytest

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.ray import liveness
from contrasweep.tuning.ray.liveness import Address, RayLost, stopping_when_silent

SOON = 0.05
FOREVER = 600.0
WAIT = 60.0
"""Seconds after which a test gives up; it takes two looks."""


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def ports(listener: socket.socket) -> dict[str, tuple[str, int]]:
    return {"the raylet": listener.getsockname()}


def _wait_for_ever(listener: socket.socket) -> None:
    with stopping_when_silent(ports(listener), SOON, poll=SOON):
        listener.close()
        while True:
            pass


def _fail_without_ray(listener: socket.socket) -> None:
    with stopping_when_silent(ports(listener), FOREVER, poll=SOON):
        listener.close()
        raise ConnectionError("some words of Ray")


def test_work_that_waits_is_left_when_a_port_falls_silent(listener: socket.socket) -> None:
    with pytest.raises(RayLost, match=r"the raylet has died.*nothing answers at 127\.0\.0\.1"):
        _wait_for_ever(listener)


def test_an_error_of_a_ray_that_is_gone_is_told_as_its_death(listener: socket.socket) -> None:
    with pytest.raises(RayLost) as lost:
        _fail_without_ray(listener)
    assert isinstance(lost.value.__cause__, ConnectionError)


def test_errors_and_ctrl_c_pass_while_ray_is_alive(listener: socket.socket) -> None:
    found = ports(listener)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(InputError, match="mine"), stopping_when_silent(found, SOON, poll=SOON):
            raise InputError("mine")
        with pytest.raises(KeyboardInterrupt), stopping_when_silent(found, SOON, poll=SOON):
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_short_silence_is_none(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    found, silent, looked_again = ports(listener), liveness._silence_of, threading.Event()
    looks: list[str | None] = []

    def look(ports: Mapping[str, Address]) -> str | None:
        looks.append(silent(ports))
        if len(looks) > 1:
            looked_again.set()
        return looks[-1]

    monkeypatch.setattr(liveness, "_silence_of", look)
    listener.close()
    with stopping_when_silent(found, FOREVER, poll=SOON):
        assert looked_again.wait(WAIT)
    assert all(looks)


def test_a_call_that_no_signal_interrupts_ends_with_its_process(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(liveness, "GRACE_SECONDS", SOON)
    found = ports(listener)
    child = os.fork()
    if not child:
        listener.close()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        with stopping_when_silent(found, SOON, poll=SOON):
            threading.Event().wait(FOREVER)
        os._exit(3)
    listener.close()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 1
    assert "the raylet has died" in capfd.readouterr().err
