"""Which device a run trains on, and what is said where it is not there."""

import inspect
from typing import Any

import pytest
import torch

import contrasweep
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.plan import plan_of
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.planning.resources import AskedResources, Machine
from contrasweep.tuning.ray import final
from contrasweep.tuning.training import pretrain as training
from contrasweep.tuning.training.devices import device_for


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
    with pytest.raises(InputError, match="--device cuda was asked for; this machine has no GPU that torch"):
        device_for("cuda")
    with pytest.raises(InputError, match="device mps cannot be used: scores are computed in float64"):
        device_for("mps")
    with pytest.raises(InputError, match="unknown device 'gpu'"):
        device_for("gpu")


def test_a_trial_takes_a_gpu_where_there_is_one_and_a_share_where_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _there(monkeypatch, gpus=2)
    assert AskedResources().gpus_each() == AskedResources(device="cuda").gpus_each() == 1.0
    assert AskedResources(gpus=0.25).gpus_each() == 0.25
    assert AskedResources(gpus=0.25, device="cuda").gpus_each() == 0.25
    assert AskedResources(device="cpu").gpus_each() == AskedResources(gpus=0.0).gpus_each() == 0.0
    _there(monkeypatch)
    assert AskedResources().gpus_each() == 0.0
    there = Machine((4,), (8.0,), "head:6379")
    assert AskedResources(machine=there).gpus_each() == 1.0, "the driver's machine has none"


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
        AskedResources(gpus=gpus, device=asked).gpus_each()
    with pytest.raises(InputError, match=r"head:6379 has 4 cpus"):
        AskedResources(device="cuda", machine=Machine((4,), (0.0,), "head:6379")).gpus_each()


OF_DEVICES = ("device", "gpus_per_worker")
RECORDED = {"device": None, "gpus_per_worker": None}
"""A study that goes on keeps the device that it has recorded."""


def test_every_entry_point_says_auto() -> None:
    said = {
        name: {one: own[one].default for one in OF_DEVICES if one in own}
        for name in contrasweep.__all__
        if inspect.isroutine(getattr(contrasweep, name))
        for own in [inspect.signature(getattr(contrasweep, name)).parameters]
    }
    assert said.pop("resume_sweep") == RECORDED
    told = {name: one for name, one in said.items() if one}
    assert {"embed", "evaluate", "feature_maps", "final_runs", "plan_sweep", "pretrain", "sweep"} == set(told)
    auto = {"device": "auto", "gpus_per_worker": None}
    assert all(one.items() <= auto.items() and "device" in one for one in told.values())


@pytest.mark.parametrize(("gpus", "taken"), [(0, 0.0), (2, 1.0)])
def test_python_takes_a_gpu_where_the_command_does(
    gpus: int, taken: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    _there(monkeypatch, gpus=gpus)
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_cores", lambda: 8)
    plan = plan_sweep("infonce", "digits")
    assert plan.resources.gpus == taken
    assert plan_sweep("infonce", "digits", device="cpu").resources.gpus == 0
    seen: list[Any] = []
    monkeypatch.setattr(final, "plan_final_runs", lambda _, resources, **__: seen.append(resources) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        final.final_runs([], concurrency=1)
    assert seen[0].gpus == taken
    monkeypatch.setattr(training, "prepare_data", lambda _, __, place: seen.append(place.type) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        next(training.pretrain(resolve("infonce", "digits", {})))
    assert seen[1] == ("cuda" if gpus else "cpu")


def test_a_study_goes_on_where_it_began_unless_a_device_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_cores", lambda: 8)
    began = plan_sweep("infonce", "digits").record()
    _there(monkeypatch, gpus=2)
    assert plan_of(began, "r").resources.gpus == 0
    assert plan_of(began, "r", AskedResources(device="auto")).resources.gpus == 1
    assert plan_of(began, "r", AskedResources(device="cuda", gpus=0.5)).resources.gpus == 0.5


COMING = Machine((0,), (0.0,), "head:6379", autoscales=True)


def test_nodes_to_come_do_not_limit_what_is_asked_for() -> None:
    asked = AskedResources(8, 2, 2, 1.0, machine=COMING).resources()
    assert (asked.concurrency, asked.gpus, asked.machine) == (8, 1.0, COMING)
    assert AskedResources(8, 1, device="cuda", machine=COMING).resources(3).concurrency == 3
    assert AskedResources(8, 1, device="cpu", machine=COMING).resources().gpus == 0
    there = Machine((4,), (1.0,), "head:6379", autoscales=True)
    assert AskedResources(8, 1, machine=there).resources().gpus == 1, "a node of now has a GPU"


def test_what_nodes_to_come_cannot_say_must_be_given() -> None:
    with pytest.raises(InputError, match="--autoscale needs --concurrency"):
        AskedResources(None, 1, device="cpu", machine=COMING).resources()
    with pytest.raises(InputError, match="--autoscale needs --device cpu or cuda"):
        AskedResources(2, 1, machine=COMING).resources()
    with pytest.raises(InputError, match="gpus-per-worker must be 0 to 1"):
        AskedResources(2, 1, gpus=2.0, machine=COMING).resources()


def test_a_study_goes_on_with_nodes_to_come() -> None:
    began = plan_sweep("infonce", "digits", concurrency=8, device="cpu", machine=COMING)
    assert began.resources.concurrency == 8
    again = plan_of(began.record(), "r", AskedResources(machine=COMING))
    assert again.resources == began.resources
