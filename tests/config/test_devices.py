"""Which device a run trains on, and what is said where it is not there."""

import pytest
import torch

from tuning.devices import device_for, gpus_for
from tuning.errors import InputError
from tuning.machine import Machine


def _there(monkeypatch: pytest.MonkeyPatch, *, gpus: int = 0, mps: bool = False) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


@pytest.mark.parametrize(
    ("gpus", "mps", "chosen"), [(0, False, "cpu"), (2, False, "cuda"), (0, True, "mps"), (1, True, "cuda")]
)
def test_auto_takes_the_accelerator_that_torch_sees(
    gpus: int, mps: bool, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _there(monkeypatch, gpus=gpus, mps=mps)
    assert device_for("auto") == chosen
    assert device_for("cpu") == "cpu"


@pytest.mark.parametrize("asked", ["cuda", "mps"])
def test_what_is_not_there_is_refused_with_what_is(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _there(monkeypatch)
    with pytest.raises(InputError, match=rf"--device {asked} was asked for; torch finds here: cpu$"):
        device_for(asked)
    with pytest.raises(InputError, match="unknown device 'gpu'"):
        device_for("gpu")


def test_a_trial_takes_a_gpu_where_there_is_one_and_a_share_where_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _there(monkeypatch, gpus=2)
    assert gpus_for("auto", None) == gpus_for("cuda", None) == 1.0
    assert gpus_for("auto", 0.25) == gpus_for("cuda", 0.25) == 0.25
    assert gpus_for("cpu", None) == gpus_for("auto", 0.0) == 0.0
    _there(monkeypatch)
    assert gpus_for("auto", None) == 0.0
    assert gpus_for("auto", None, Machine((4,), 8.0, "head:6379")) == 1.0, "the driver's machine has none"


@pytest.mark.parametrize(
    ("asked", "gpus", "said"),
    [
        ("cuda", None, "this machine has no GPU"),
        ("cpu", 0.5, "exclude each other"),
        ("mps", None, "contrasweep train"),
        ("gpu", None, "unknown device 'gpu'"),
    ],
)
def test_gpus_that_cannot_be_had_are_refused(
    asked: str, gpus: float | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _there(monkeypatch)
    with pytest.raises(InputError, match=said):
        gpus_for(asked, gpus)
    with pytest.raises(InputError, match=r"head:6379 has 4 cpus"):
        gpus_for("cuda", None, Machine((4,), 0.0, "head:6379"))
