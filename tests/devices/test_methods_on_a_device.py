"""On the stand-in device every method trains, is scored, stops and goes on, as on the CPU, and seldom waits.

The runs are made once, in a process of their own. When a limit below is met with room to spare, lower it:
`python -m tests.devices.counts --places` prints what a step costs now.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from contrasweep.tuning.methods import METHODS
from tests.devices.method_runs import SETTINGS, DeviceRun, method_runs, setting_runs
from tests.devices.process import DeviceProcess
from tests.devices.transfer_runs import transfer_runs

MOST_COPIES = 2
"""The copies to the device in a step: what the CPU has drawn for it, in one; a few methods draw more."""

MOST_LAUNCHES = 520
"""The operations of a step with few kinds of views, whatever the method."""

WAITS: Mapping[str, tuple[int, str]] = {}
"""Where the host may wait for the device in a step: how often at most, and for what. Nothing else may."""

Runs = Mapping[str, DeviceRun]


@pytest.fixture(scope="module")
def process() -> Iterator[DeviceProcess]:
    found = DeviceProcess("contrasweep.tuning.training.pretrain")
    yield found
    found.close()


@pytest.fixture(scope="module")
def methods(process: DeviceProcess) -> Runs:
    return process(method_runs)


@pytest.fixture(scope="module")
def settings(process: DeviceProcess) -> Runs:
    return process(setting_runs)


@pytest.fixture(scope="module")
def transfers(process: DeviceProcess) -> Mapping[str, tuple[Any, Any]]:
    return process(transfer_runs)


def _check_same(run: DeviceRun) -> None:
    assert not run.error, run.error
    assert run.different == ()


def _check_steps(run: DeviceRun) -> None:
    for counts in (run.step, run.resumed_step):
        waits = counts.where("wait")
        assert {place: count for place, count in waits.items() if count > _allowed(place)} == {}
        assert counts.of("to_device") <= MOST_COPIES
        assert counts.of("draw") == 0, "a GPU would draw other numbers"
        assert 0 < counts.of("launch") <= MOST_LAUNCHES


def _allowed(place: str) -> int:
    return WAITS[place][0] if place in WAITS else 0


@pytest.mark.parametrize("method", METHODS)
def test_a_method_gives_the_numbers_of_the_cpu(method: str, methods: Runs) -> None:
    _check_same(methods[method])


@pytest.mark.parametrize("method", METHODS)
def test_a_step_waits_only_where_it_may(method: str, methods: Runs) -> None:
    _check_steps(methods[method])


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_step_with_a_setting_waits_only_where_it_may(setting: str, settings: Runs) -> None:
    _check_steps(settings[setting])


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_step_after_resuming_is_like_the_others(setting: str, settings: Runs) -> None:
    assert settings[setting].step.places == settings[setting].resumed_step.places


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_gives_the_numbers_of_the_cpu(setting: str, settings: Runs) -> None:
    _check_same(settings[setting])


@pytest.mark.parametrize("part", ["final scores", "encoder", "features", "evaluation"])
def test_an_encoder_is_scored_and_used_as_on_the_cpu(
    part: str, transfers: Mapping[str, tuple[Any, Any]]
) -> None:
    here, there = transfers[part]
    assert here == there
