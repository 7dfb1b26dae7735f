"""Which device a run trains on, and what is said where it is not there."""

import pytest
import torch

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.resources import Machine, device_for, gpus_for


def _there(monkeypatch: pytest.MonkeyPatch, *, gpus: int = 0) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)


@pytest.mark.parametrize(("gpus", "chosen"), [(0, "cpu"), (2, "cuda")])
def test_auto_takes_the_accelerator_that_torch_sees(
    gpus: int, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _there(monkeypatch, gpus=gpus)
    assert device_for("auto") == chosen
    assert device_for("cpu") == "cpu"


def test_what_is_not_there_is_refused_with_what_is(monkeypatch: pytest.MonkeyPatch) -> None:
    _there(monkeypatch)
    with pytest.raises(InputError, match=r"--device cuda was asked for; torch finds here: cpu$"):
        device_for("cuda")
    with pytest.raises(InputError, match="device mps cannot be used: scores are computed in float64"):
        device_for("mps")
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
    assert gpus_for("auto", None, Machine((4,), (8.0,), "head:6379")) == 1.0, "the driver's machine has none"


@pytest.mark.parametrize(
    ("asked", "gpus", "said"),
    [
        ("cuda", None, "this machine has no GPU"),
        ("cpu", 0.5, "exclude each other"),
        ("mps", None, "device mps cannot be used"),
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
        gpus_for("cuda", None, Machine((4,), (0.0,), "head:6379"))
