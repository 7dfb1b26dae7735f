"""A search keeps the encoders of its best trials, final runs keep snapshots; files hold what was trained."""

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from in_process import without_ray
from studies import EPOCHS, tiny_plan

from contrasweep.data import load_test, whole_image
from contrasweep.models import load_encoder
from contrasweep.tuning.errors import InputError, TrainingDiverged
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.ray.final import final_runs
from contrasweep.tuning.ray.sweep import resume_sweep, run_sweep
from contrasweep.tuning.results.encoders import KeptEncoders, runs_with_encoders
from contrasweep.tuning.results.selection import best_trials
from contrasweep.tuning.store import Location, ResultsStore, StoreUnavailable, open_location
from contrasweep.tuning.store.layout import encoder_path
from contrasweep.tuning.training.pretrain import EpochRecord, pretrain
from tests.threads import torch_threads


@pytest.fixture
def location(tmp_path: Path) -> Location:
    return open_location(tmp_path, writable=True)


def held(results: Path) -> set[str]:
    return {path.name for path in (results / "exports" / "small").glob("*")}


def test_the_best_two_of_a_sweep_are_kept_and_a_resumed_one_keeps_its_number(tmp_path: Path) -> None:
    with without_ray():
        run_sweep(tiny_plan(tmp_path, keep_weights=2, scheduler="none", trials=4))
        best = [one.trial for one in best_trials(ResultsStore(tmp_path), "small", top=3)]
        assert held(tmp_path) == {f"{trial:05d}-0" for trial in best[:2]}
        resume_sweep("small", tmp_path, extend=1, keep_weights=1)
    best = [one.trial for one in best_trials(ResultsStore(tmp_path), "small", top=1)]
    assert held(tmp_path) == {f"{best[0]:05d}-0"}
    encoder = load_encoder(tmp_path / encoder_path("small", best[0], 0))
    with torch.no_grad():
        features = encoder(whole_image(load_test("colour-digits").images[:4], 8))
    assert features.shape == (4, encoder.width)


def test_a_resumed_sweep_with_nothing_left_to_train_keeps_its_number_too(tmp_path: Path) -> None:
    with without_ray():
        run_sweep(tiny_plan(tmp_path, keep_weights=3, scheduler="none", trials=3))
        assert len(held(tmp_path)) == 3
        resume_sweep("small", tmp_path, keep_weights=1)
    best = [one.trial for one in best_trials(ResultsStore(tmp_path), "small", top=1)]
    assert held(tmp_path) == {f"{best[0]:05d}-0"}


def test_none_is_kept_where_none_is_wanted(tmp_path: Path) -> None:
    with without_ray():
        run_sweep(tiny_plan(tmp_path, keep_weights=0, trials=1))
    assert not (tmp_path / "exports").exists()
    with pytest.raises(InputError, match="keep-weights"):
        tiny_plan(tmp_path, keep_weights=-1)


def test_a_seed_that_completed_keeps_its_encoder_until_the_failed_one_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[int] = []

    def failing(experiment: Experiment, *args: Any, **options: Any) -> Iterator[EpochRecord]:
        for record in pretrain(experiment, *args, **options):
            if record.finished and experiment.seed == 1 and not failed:
                failed.append(1)
                raise TrainingDiverged("it broke")
            yield record

    monkeypatch.setattr("contrasweep.tuning.trials.trial.pretrain", failing)
    with without_ray():
        run_sweep(tiny_plan(tmp_path, keep_weights=3, trials=2, seeds=2, scheduler="none"))
    outcomes = ResultsStore(tmp_path).trials("small").to_pylist()
    assert sorted((row["trial"], row["seed"]) for row in outcomes if row["status"] == "failed") == [(0, 1)]
    assert held(tmp_path) == {"00000-0", "00001-0", "00001-1"}
    _, rows = runs_with_encoders(ResultsStore(tmp_path), "small")
    assert set(rows) == {(1, 0), (1, 1)}
    with without_ray():
        resume_sweep("small", tmp_path, retry_failed=True)
    assert held(tmp_path) == {"00000-0", "00000-1", "00001-0", "00001-1"}
    _, rows = runs_with_encoders(ResultsStore(tmp_path), "small")
    assert len(rows) == 4


@pytest.fixture
def two_threads() -> Iterator[None]:
    with torch_threads(2):
        yield


@pytest.mark.usefixtures("two_threads")
def test_final_runs_keep_snapshots(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise StoreUnavailable("No space left on device")

    with without_ray():
        run_sweep(tiny_plan(tmp_path, trials=1))
    best = best_trials(ResultsStore(tmp_path), "small")[0]
    with monkeypatch.context() as full:
        full.setattr(import_module("contrasweep.tuning.store.compact"), "write_table", refuse)
        final_runs(best, seeds=1, concurrency=1, snapshots=1)
    assert "in many files (`contrasweep compact small-final" in caplog.text, "a full disk at the end"
    assert torch.get_num_threads() == 2, "a notebook goes on in this process"
    (folder,) = (tmp_path / "exports" / "small-final").glob("*")
    names = [f"epoch-{epoch:05d}.safetensors" for epoch in range(1, EPOCHS + 1)]
    assert sorted(path.name for path in folder.glob("*")) == ["encoder.safetensors", *names]
    first, last, end = (load_encoder(folder / name) for name in (names[0], names[-1], "encoder.safetensors"))
    same = [a.equal(b) for a, b in zip(last.state_dict().values(), end.state_dict().values(), strict=True)]
    assert all(same)
    assert any(not a.equal(b) for a, b in zip(first.parameters(), end.parameters(), strict=True))
    with pytest.raises(InputError, match="snapshots"):
        final_runs(best, seeds=1, concurrency=1, snapshots=0)
    final_runs(best, seeds=1, concurrency=1, snapshots=1)
    assert "without snapshots" not in caplog.text
    for name in names:
        (folder / name).unlink()
    final_runs(best, seeds=1, concurrency=1, snapshots=1)
    assert "the store holds 1 run without snapshots" in caplog.text
    assert "no snapshots will be kept" not in caplog.text
    final_runs(best, seeds=1, concurrency=1, snapshots=EPOCHS + 1)
    told = f"asked for every {EPOCHS + 1} epochs, and a run trains for {EPOCHS}"
    assert told in caplog.text


@pytest.mark.parametrize(
    ("most", "merits", "kept"),
    [
        (1, [[0.2], [0.5], [0.4]], {1}),
        (2, [[0.2], [0.5], [0.4]], {1, 2}),
        (1, [[0.5], [0.5]], {0}),
        (2, [None, [0.1], None], {1}),
        # Of several metrics, the front comes first: trial 1 beats trial 0, and trial 2 is on it, unlike 0.
        (1, [[0.5, 1.0], [0.5, 2.0], [0.1, 3.0]], {1}),
        (2, [[0.5, 1.0], [0.5, 2.0], [0.1, 3.0]], {1, 2}),
    ],
)
def test_weaker_trials_lose_theirs_at_once(
    most: int, merits: list[list[float] | None], kept: set[int], location: Location
) -> None:
    encoders = KeptEncoders(location, "s", most, {})
    for trial, own in enumerate(merits):
        for seed in (0, 1):
            location.write(encoder_path("s", trial, seed), b"")
        encoders.add(trial, own)
        assert len(location.entries("exports/s")) <= 2 * most
    assert {int(info.base_name[:5]) for info in location.entries("exports/s")} == kept


def test_what_a_killed_driver_left_goes_with_the_next_trial(location: Location) -> None:
    for trial in range(4):
        location.write(encoder_path("s", trial, 0), b"")
    KeptEncoders(location, "s", 1, {0: [0.3], 1: [0.9]}).add(2, [0.1])
    # Trial 3 is still at work.
    assert {info.base_name for info in location.entries("exports/s")} == {"00001-0", "00003-0"}


def test_a_file_that_stays_is_a_warning(
    location: Location, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for trial in range(2):
        location.write(encoder_path("s", trial, 0), b"")

    def refuse(*_: object) -> None:
        raise PermissionError("no")

    remove: Callable[..., None] = refuse
    monkeypatch.setattr(Location, "delete_folder", remove)
    KeptEncoders(location, "s", 1, {0: [0.3]}).add(1, [0.1])
    assert "Encoders of weaker trials stay" in caplog.text
