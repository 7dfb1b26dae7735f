"""What trials of several workers take of a machine, and what of it is refused before any work."""

from typing import Any

import pytest

from contrasweep.search_spaces import Space
from contrasweep.tuning.cli.sweep_report import say_what_runs
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.plan import plan_of
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.resources import AskedResources, Machine, Resources, idle_gpu_in_words


def _refused(**options: Any) -> str:
    with pytest.raises(InputError) as refused:
        plan_sweep("infonce", "digits", **options)
    return str(refused.value)


def test_workers_share_batches_of_every_size_that_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_cores", lambda: 8)
    message = _refused(workers=3, values={"batch_size": 64})
    assert message == "batch_size 64 does not divide among 3 workers: give 63 or 66, or other workers"
    sizes = Space.parse({"batch_size": {"choice": [64, 63], "default": 64}}, "own")
    assert "batch_size 63 does not divide among 2 workers" in _refused(space=sizes, workers=2)
    sizes = Space.parse({"batch_size": {"int": [64, 128], "default": 64}}, "own")
    assert "own searches batch_size over a range" in _refused(space=sizes, workers=2)


@pytest.mark.parametrize(
    ("cores", "gpus_there", "options", "at_once"),
    [
        (8, 0, {"workers": 2}, 4),
        (8, 0, {"workers": 2, "cpus_per_trial": 3}, 1),
        (8, 0, {"workers": 2, "concurrency": 3}, 3),
        (8, 0, {"workers": 2, "concurrency": 9}, 4),
        (2, 0, {"concurrency": 9}, 9),
        (8, 2, {"gpus_per_worker": 0.5}, 4),
        (8, 2, {"gpus_per_worker": 0.4}, 4),
        (8, 2, {"gpus_per_worker": 0.5, "concurrency": 9}, 4),
        (8, 2, {"gpus_per_worker": 1, "workers": 2}, 1),
        (8, 4, {"gpus_per_worker": 0.6, "workers": 2}, 2),
        (2, 4, {"gpus_per_worker": 1}, 2),
    ],
)
def test_no_more_groups_run_at_once_than_fit(
    cores: int,
    gpus_there: int,
    options: dict[str, Any],
    at_once: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_cores", lambda: cores)
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_gpus", lambda: gpus_there)
    plan = plan_sweep("infonce", "digits", **options)
    assert plan.resources.concurrency == at_once
    # A resumed study takes no more than fits here, also of single processes.
    assert plan_of(plan.record(), "r").resources.concurrency == min(at_once, cores)


def test_more_gpus_than_there_are_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_cores", lambda: 8)
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_gpus", lambda: 2)
    message = _refused(workers=3, gpus_per_worker=1, values={"batch_size": 96})
    assert message == (
        "trials of 3 workers of 1 cpu and 1 GPU each were asked for; "
        "this machine has 8 cpus and 2 GPUs: room for 0"
    )
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_gpus", lambda: 1)
    assert "has 8 cpus and 1 GPU: room for 0" in _refused(workers=2, gpus_per_worker=1)
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_gpus", lambda: 0)
    assert "has 8 cpus and no GPU that torch can use: room for 0" in _refused(gpus_per_worker=1)
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_gpus", lambda: 2)
    # A share is of one GPU: two workers of 0.6 do not fit on one and a bit.
    assert "1 cpu and 0.6 GPU each" in _refused(workers=3, gpus_per_worker=0.6, values={"batch_size": 96})


def test_a_study_goes_on_with_other_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_cores", lambda: 8)
    stored = plan_sweep("infonce", "digits", workers=2).record()
    assert plan_of(stored, "r", AskedResources(workers=4)).resources == Resources(2, workers=4)
    assert plan_of(stored, "r", AskedResources(8, workers=1)).resources == Resources(8)


@pytest.mark.parametrize(("concurrency", "at_once"), [(None, 16), (3, 3), (20, 20)])
def test_more_trials_run_as_many_at_once_as_were_asked_for(
    concurrency: int | None, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_cores", lambda: 16)
    plan = plan_sweep("infonce", "digits", trials=2, concurrency=concurrency)
    record = plan.record()
    search = record.require_search()
    assert (plan.resources.concurrency, search.at_once, search.concurrency) == (2, 2, at_once)
    assert plan_of(record, "r").resources.concurrency == 2
    fit = min(at_once, 16)
    assert plan_of(record, "r", extend=98).resources.concurrency == fit
    assert plan_of(record, "r", AskedResources(12), extend=98).resources.concurrency == 12
    early = record.with_search(trials=1)
    assert plan_of(early, "r", extend=98).resources.concurrency == fit, "of a search that ended early too"


def test_more_groups_run_only_as_many_at_once_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_cores", lambda: 8)
    record = plan_sweep("infonce", "digits", trials=2, workers=2, concurrency=16).record()
    assert record.require_search().concurrency == 4
    assert plan_of(record, "r", AskedResources(16), extend=8).resources.concurrency == 4


@pytest.mark.parametrize(
    ("cores", "gpus", "asked", "encoder", "hint"),
    [
        (16, 1, {}, "lenet5", "--gpus-per-worker 0.0625, 16 trials fit at once, not 1 "),
        (16, 2, {}, "lenet5", "--gpus-per-worker 0.125, 16 trials fit at once, not 2 "),
        (7, 1, {}, "small-conv", "--gpus-per-worker 0.1428, 7 trials fit at once, not 1 "),
        (16, 1, {"cpus": 4}, "lenet5", "--gpus-per-worker 0.25, 4 trials fit at once, not 1 "),
        (16, 1, {}, "resnet18", None),
        (16, 1, {"gpus": 0.5}, "lenet5", None),
        (16, 0, {"gpus": 0.0}, "lenet5", None),
        (1, 1, {}, "lenet5", None),
        (16, 1, {"machine": Machine((16,), (1.0,), "auto")}, "lenet5", None),
        (16, 2, {"workers": 2}, "lenet5", None),
    ],
)
def test_a_gpu_that_would_wait_for_a_small_network_is_told(
    cores: int,
    gpus: int,
    asked: dict[str, Any],
    encoder: str,
    hint: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_cores", lambda: cores)
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_gpus", lambda: gpus)
    told = idle_gpu_in_words(Resources(**{"concurrency": 1, "gpus": 1.0, **asked}), encoder)
    assert told is None if hint is None else hint in str(told)
    if told is not None:
        # What it names fits: the share is rounded down.
        share = float(told.split("--gpus-per-worker ")[1].split(",")[0])
        here = Machine((cores,), (float(gpus),))
        fit = here.room_for(Resources(1, asked.get("cpus", 1), gpus=share))
        assert f", {fit} trials fit" in told


def test_a_sweep_tells_it_before_it_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_cores", lambda: 8)
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_gpus", lambda: 1)
    say_what_runs([plan_sweep("infonce", "digits"), plan_sweep("fair-cclk", "colour-digits")])
    assert capsys.readouterr().err.count("with --gpus-per-worker 0.125, 8 trials") == 1
