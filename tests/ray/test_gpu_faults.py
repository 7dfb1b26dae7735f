"""Faults and full memories of GPUs in sweeps: what is tried again, how, and what the search is told.

No GPU is used: trials raise the errors of torch, on the CPU. Tune itself is tried in `test_sweep_faults.py`.
"""

import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from in_process import without_ray
from ray.tune import PlacementGroupFactory
from ray.tune.experiment import Trial
from studies import tiny_plan

from contrasweep.tuning.errors import GpuFault
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.resources import Machine, Resources
from contrasweep.tuning.ray.out_of_memory import alone_if_gpu_was_full, request_alone
from contrasweep.tuning.ray.sweep import run_sweep
from contrasweep.tuning.ray.worker import TrialWorker
from contrasweep.tuning.search import study
from contrasweep.tuning.store import ResultsStore, open_location, save_study
from contrasweep.tuning.training.pretrain import EpochRecord, pretrain
from contrasweep.tuning.trials.seeds import new_trial
from contrasweep.tuning.trials.trial import DataCache, TrialRequest

ASSERT = torch.AcceleratorError("CUDA error: device-side assert triggered\nCompile with TORCH_USE_CUDA_DSA.")
FULL = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
TRIALS = 3


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """Let trial 1 raise `error` before epoch 2, as many times as given; return the tries, by their trial."""

    def install(error: Exception, times: int = 100) -> list[int]:
        begun: list[int] = []
        left = [times]

        def breaking(experiment: Experiment, *args: Any, **options: Any) -> Iterator[EpochRecord]:
            begun.append(len(begun))
            for record in pretrain(experiment, *args, **options):
                if record.epoch == 2 and left[0] and len(begun) > 1:
                    left[0] -= 1
                    raise error
                yield record

        monkeypatch.setattr("contrasweep.tuning.trials.trial.pretrain", breaking)
        return begun

    return install


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What the search is told of the ends of trials."""
    ends: list[tuple[str, int]] = []
    for name in ("fail", "complete", "prune"):
        real = getattr(study.SearchStudy, name)

        def follow(own: Any, trial: int, *rest: Any, name: str = name, real: Any = real) -> None:
            ends.append((name, trial))
            real(own, trial, *rest)

        monkeypatch.setattr(study.SearchStudy, name, follow)
    return ends


@pytest.fixture
def half_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SweepPlan:
    """Three trials, each on half of the one GPU, whose work is done on the CPU."""
    monkeypatch.setattr("contrasweep.tuning.trials.trial.device_of", lambda gpus: "cpu")
    monkeypatch.setattr("contrasweep.tuning.ray.out_of_memory.ray.cluster_resources", lambda: {"GPU": 1.0})
    monkeypatch.setattr("contrasweep.tuning.ray.searcher.lacking_anywhere", lambda needs, study: None)
    return tiny_plan(
        tmp_path,
        trials=TRIALS,
        scheduler="none",
        gpus_per_worker=0.5,
        machine=Machine((4,), (1.0,)),
    )


def swept(plan: SweepPlan) -> tuple[list[dict[str, Any]], int]:
    """Run a sweep; return its rows, and how many workers it took."""
    workers: list[int] = []
    with without_ray(), pytest.MonkeyPatch.context() as patch:
        setup = TrialWorker.setup
        patch.setattr(TrialWorker, "setup", lambda own, config: (workers.append(1), setup(own, config)))
        run_sweep(plan)
    return ResultsStore(plan.results).trials("small").to_pylist(), len(workers)


def test_a_fault_costs_a_new_worker_and_the_search_does_not_learn_of_it(
    half_a_gpu: SweepPlan, faulty: Callable[..., list[int]], told: list[tuple[str, int]]
) -> None:
    begun = faulty(ASSERT, times=1)
    rows, workers = swept(half_a_gpu)
    assert [row["status"] for row in rows] == ["completed"] * TRIALS
    assert [(row["attempt"], row["gpus"]) for row in rows] == [(1, 0.5), (2, 0.5), (1, 0.5)]
    assert (len(begun), workers) == (TRIALS + 1, 2)
    assert told == [("complete", 0), ("complete", 1), ("complete", 2)]


def test_a_trial_that_faults_in_new_workers_too_has_failed_of_it(
    half_a_gpu: SweepPlan, faulty: Callable[..., list[int]], told: list[tuple[str, int]]
) -> None:
    faulty(ASSERT, times=2)
    rows, workers = swept(half_a_gpu)
    assert [row["status"] for row in rows] == ["completed", "failed", "completed"]
    assert rows[1]["error"] == (
        "its worker failed 2 times, the last time: GpuFault: the GPU failed, and no longer serves this "
        "process (CUDA error: device-side assert triggered)"
    )
    assert workers == 3, "no later trial gets a worker whose GPU failed"
    assert told == [("complete", 0), ("fail", 1), ("complete", 2)]


def test_a_worker_that_fails_before_it_begins_the_next_trial_costs_a_new_worker(
    half_a_gpu: SweepPlan, monkeypatch: pytest.MonkeyPatch, told: list[tuple[str, int]]
) -> None:
    """CUDA may tell of a fault only when the memory of the last trial is given back."""

    def breaking(own: TrialWorker, config: dict[str, Any]) -> bool:
        raise GpuFault("the GPU failed")

    monkeypatch.setattr(TrialWorker, "reset_config", breaking)
    rows, workers = swept(half_a_gpu)
    assert [(row["status"], row["attempt"]) for row in rows] == [("completed", 1)] * TRIALS
    assert workers == TRIALS
    assert told == [("complete", 0), ("complete", 1), ("complete", 2)]


def test_memory_that_ran_out_beside_others_is_tried_again_alone(
    half_a_gpu: SweepPlan, faulty: Callable[..., list[int]], told: list[tuple[str, int]]
) -> None:
    faulty(FULL, times=1)
    rows, _ = swept(half_a_gpu)
    assert [row["status"] for row in rows] == ["completed"] * TRIALS
    assert [(row["attempt"], row["gpus"]) for row in rows] == [(1, 0.5), (2, 1.0), (1, 0.5)]
    assert ("fail", 1) not in told


def test_memory_that_runs_out_alone_is_the_failure_of_the_configuration(
    half_a_gpu: SweepPlan, faulty: Callable[..., list[int]], told: list[tuple[str, int]]
) -> None:
    faulty(FULL, times=2)
    rows, _ = swept(half_a_gpu)
    assert [row["status"] for row in rows] == ["completed", "failed", "completed"]
    assert rows[1]["error"].startswith("too little memory on the GPU for batch_size ")
    assert (rows[1]["attempt"], rows[1]["gpus"]) == (2, 1.0)
    assert told.count(("fail", 1)) == 1


@pytest.mark.parametrize(
    ("workers", "gpus", "there", "share"),
    [
        (1, 0.25, 1, 1.0),
        (1, 0.25, 8, 1.0),
        (2, 0.25, 1, 0.5),
        (2, 0.5, 1, 0.5),
        (2, 0.5, 2, 1.0),
        (4, 0.5, 3, 0.5),
    ],
)
def test_how_much_leaves_no_room_for_others(
    request_: TrialRequest, workers: int, gpus: float, there: float, share: float
) -> None:
    shared = request_alone(replace(request_, workers=workers, gpus=gpus), there)
    assert (shared.gpus, shared.alone, shared.shares_gpu) == (share, True, False)


def test_only_a_trial_that_begins_again_gets_more(request_: TrialRequest, tmp_path: Path) -> None:
    asked: list[Any] = []
    errors = tmp_path / "errors.txt"
    trial = SimpleNamespace(
        status=Trial.RUNNING,
        error_file=str(errors),
        config={"request": replace(request_, workers=2, gpus=0.5)},
        num_failures=1,
        update_resources=asked.append,
    )
    prepare = alone_if_gpu_was_full(Resources(1, 1, 2, 0.5), lambda: 2.0)
    full = "contrasweep.tuning.errors.SharedGpuFull: too little memory"
    for status, told in ((Trial.RUNNING, full), (Trial.ERROR, "GpuFault: the GPU failed")):
        trial.status = status
        errors.write_text(f"Failure # 1 (occurred at noon)\n{told}\n")
        prepare(trial)
        assert asked == []
    errors.write_text(f"Failure # 1 (occurred at noon)\nother\nFailure # 2 (occurred at noon)\n{full}\n")
    prepare(trial)
    assert asked == [PlacementGroupFactory([{}, *[{"CPU": 1, "GPU": 1.0}] * 2])]
    assert (trial.config["request"].gpus, trial.config["request"].alone) == (1.0, True)


@pytest.fixture(scope="module")
def request_(tmp_path_factory: pytest.TempPathFactory) -> TrialRequest:
    """Trial 0 of a small study."""
    folder = tmp_path_factory.mktemp("study")
    plan = tiny_plan(folder)
    location, record = open_location(folder, writable=True), plan.record()
    save_study(location, record)
    values = plan.space.defaults()
    return TrialRequest(location, record, 0, plan.experiment_of(values), values, data_root=plan.data_root)


@pytest.mark.parametrize(("epochs", "seeds"), [(2, 1), (4, 1), (4, 2)])
def test_a_trial_that_has_ended_or_was_stopped_holds_no_network(
    request_: TrialRequest, monkeypatch: pytest.MonkeyPatch, epochs: int, seeds: int
) -> None:
    """The worker holds the trial until the next one begins; a whole trial has four records."""
    networks: list[Any] = []

    def watched(*args: Any, **options: Any) -> Iterator[EpochRecord]:
        for record in pretrain(*args, **options):
            networks.append(weakref.ref(record.objective))
            yield record

    monkeypatch.setattr("contrasweep.tuning.trials.trial.pretrain", watched)
    trial = new_trial(replace(request_, trial=epochs + seeds, seeds=seeds), DataCache(seeds))
    for _ in range(epochs):
        trial.advance()
    if epochs < 4:
        assert all(network() is not None for network in networks)
        trial.close()
    assert len(networks) == epochs * seeds
    assert all(network() is None for network in networks)


def test_a_worker_gives_memory_back_between_trials(
    half_a_gpu: SweepPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    emptied: list[str] = []
    monkeypatch.setattr("contrasweep.tuning.ray.worker.free_memory", emptied.append)
    swept(half_a_gpu)
    assert len(emptied) >= TRIALS
