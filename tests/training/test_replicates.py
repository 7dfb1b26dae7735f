"""A trial on several seeds: its reports and rows, how it goes on after a worker dies, and how it fails."""

import pickle
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from trial_steps import STUDY, Clock, drop_after, finish, metrics_of

from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.objectives.prepared import Prepared
from contrasweep.tuning.objectives.ranks import group_ranks
from contrasweep.tuning.store import Location, ResultsStore
from contrasweep.tuning.trials.checkpoints import CHECKPOINT_SECONDS
from contrasweep.tuning.trials.seeds import Replicates, end_all, mean_report, new_trial
from contrasweep.tuning.trials.trial import DataCache, Trial, TrialReport, TrialRequest
from tests.ranks import WORLD, results_of_ranks

Request = Callable[..., TrialRequest]


class _OneSeedShort(DataCache):
    """A cache that runs out of memory on the second seed."""

    def get(self, experiment: Experiment, data_root: Path | None) -> Prepared:
        if experiment.seed % 2 == 1:
            raise MemoryError("no room for seed 1")
        return super().get(experiment, data_root)


def last_rows(store: ResultsStore) -> dict[int, dict[str, object]]:
    return {row["seed"]: row for row in store.trials(STUDY).to_pylist()}


def test_seeds_advance_together_and_report_their_mean(
    request_of: Request, cache: DataCache, store: ResultsStore
) -> None:
    request = replace(request_of(0), seeds=2)
    first = request.experiment.seed
    reports = finish(Replicates(request, cache))  # type: ignore[arg-type]
    alone = [finish(Trial(replace(one, trial=1), cache)) for one in request.replicates()]
    for report, *seeds in zip(reports, *alone, strict=True):
        assert [seed.epoch for seed in seeds] == [report.epoch] * 2
        for name, mean in report.metrics.items():
            values = [seed.metrics[name] for seed in seeds]
            assert mean == pytest.approx(statistics.fmean(values), rel=1e-12)
            assert report.std[name] == pytest.approx(statistics.stdev(values), rel=1e-9, abs=1e-15)
    assert reports[-1].finished
    rows = {(row["trial"], row["seed"]): row for row in store.trials(STUDY).to_pylist()}
    assert set(rows) == {(trial, seed) for trial in (0, 1) for seed in (first, first + 1)}
    for seed in (first, first + 1):
        assert metrics_of(rows[0, seed]) == metrics_of(rows[1, seed])
        assert rows[0, seed]["config"] == rows[1, first]["config"]


def test_a_seed_that_is_behind_catches_up_before_anything_is_reported(
    request_of: Request, cache: DataCache, store: ResultsStore
) -> None:
    request = replace(request_of(0), seeds=2)
    whole = finish(Replicates(replace(request, trial=1), cache))  # type: ignore[arg-type]
    ahead, behind = request.replicates()
    drop_after(ahead, cache, checkpointed=1)
    drop_after(behind, cache, checkpointed=0)
    reports = finish(Replicates(request, cache))  # type: ignore[arg-type]
    assert [report.epoch for report in reports] == [report.epoch for report in whole[2:]]
    assert [report.metrics for report in reports] == [report.metrics for report in whole[2:]]


def test_all_seeds_are_saved_in_the_same_round(
    request_of: Request, cache: DataCache, location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, request, calls = Clock(), replace(request_of(), seeds=2), []
    advance = Trial.advance

    def slow(trial: Trial) -> TrialReport:
        report = advance(trial)
        calls.append(report.epoch)
        if len(calls) == 3:  # the first seed's second epoch is a long one
            clock.seconds += CHECKPOINT_SECONDS
        return report

    monkeypatch.setattr(Trial, "advance", slow)
    trial = Replicates(request, cache, clock=clock)
    kept = [Path(location.path(one.checkpoint_path)) for one in request.replicates()]
    saved = []
    for _ in range(3):
        trial.advance()
        trial._members[0]._checkpoints.wait()  # type: ignore[union-attr]
        saved.append([path.exists() for path in kept])
    assert saved == [[False, False], [False, False], [True, True]]
    trial.close()


def test_a_seed_that_fails_takes_the_trial_with_it(
    request_of: Request, store: ResultsStore, caplog: pytest.LogCaptureFixture
) -> None:
    base = request_of(0)
    request = replace(base, seeds=2, experiment=base.experiment.with_values({"seed": 0}))
    report = Replicates(request, _OneSeedShort()).advance()
    assert report.error == "seed 1: MemoryError: no room for seed 1"
    rows = last_rows(store)
    assert {seed: row["status"] for seed, row in rows.items()} == {0: "failed", 1: "failed"}
    assert rows[0]["error"] == report.error
    assert rows[1]["error"] == "MemoryError: no room for seed 1"


def test_a_trial_ended_from_outside_ends_on_every_seed(
    request_of: Request, cache: DataCache, store: ResultsStore
) -> None:
    request = replace(request_of(0), seeds=2)
    trial = Replicates(request, cache)
    trial.advance()
    trial.close()
    assert end_all(request, "stopped", rung=1) == "stopped"
    assert {row["status"] for row in last_rows(store).values()} == {"stopped"}


def test_a_death_between_the_ends_of_two_seeds_can_be_gone_on_with(
    request_of: Request, cache: DataCache, store: ResultsStore
) -> None:
    request = replace(request_of(0), seeds=2)
    whole = finish(Replicates(replace(request, trial=1), cache))  # type: ignore[arg-type]
    first, second = request.replicates()
    finish(Trial(first, cache))
    drop_after(second, cache, checkpointed=1)
    reports = finish(Replicates(request, cache))  # type: ignore[arg-type]
    assert reports[-1].finished
    assert reports[-1].metrics == whole[-1].metrics
    rows = {(row["trial"], row["seed"]): row for row in store.trials(STUDY).to_pylist()}
    assert {row["status"] for row in rows.values()} == {"completed"}
    assert end_all(request, "failed", error="too late") == "completed"


def test_all_workers_leave_out_a_seed_that_completed_before_a_death(
    request_of: Request, cache: DataCache, store: ResultsStore, tmp_path: Path
) -> None:
    request = replace(request_of(0), seeds=2, workers=WORLD)
    first, second = request.replicates()
    (ended,) = finish(Trial(first, cache))[-1:]
    drop_after(second, cache, checkpointed=1)
    (tmp_path / "request.pkl").write_bytes(pickle.dumps(request))
    ranks = results_of_ranks(run_rank, tmp_path, "contrasweep.tuning.trials.seeds")
    for rank in ranks:
        assert [(report.epoch, report.error) for report in rank["reports"]] == [(ended.epoch, None)]
        assert rank["trained"] == [second.experiment.seed]
    found = {seed: (row["status"], row["attempt"]) for seed, row in last_rows(store).items()}
    assert found == {first.experiment.seed: ("completed", 1), second.experiment.seed: ("completed", 2)}


class _Noting(DataCache):
    """A cache that notes the seeds that train."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.seeds: list[int] = []

    def get(self, experiment: Experiment, data_root: Path | None) -> Prepared:
        self.seeds.append(experiment.seed)
        return super().get(experiment, data_root)


def run_rank(rank: int, folder: str) -> None:
    """Go on with the trial of `request.pkl` as one of its workers."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=WORLD)
    request = pickle.loads((Path(folder) / "request.pkl").read_bytes())
    data = _Noting(request.seeds)
    reports = finish(new_trial(request, data, group_ranks()))  # type: ignore[arg-type]
    torch.save({"reports": reports, "trained": data.seeds}, Path(folder) / f"rank-{rank}.pt")
    dist.destroy_process_group()


def test_a_metric_that_one_seed_lacks_has_no_mean() -> None:
    one = TrialReport(1, {"a": 1.0, "b": float("nan"), "c": 1.0}, 1.0)
    other = TrialReport(1, {"a": 2.0, "b": 1.0}, 2.0)
    together = mean_report([one, other])
    assert together.metrics["a"] == 1.5
    assert together.metrics["b"] != together.metrics["b"]
    assert set(together.metrics) == {"a", "b"}
    assert set(together.std) == {"a"}
    assert together.train_seconds == 3.0
