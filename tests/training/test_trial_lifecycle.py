"""A trial writes its outcome, and its failure ends no other trial."""

import logging
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs
from tensorboard.plugins.hparams.api_pb2 import STATUS_FAILURE, STATUS_SUCCESS
from trial_steps import STUDY, finish, metrics_of, row_of, scalars_of, session_statuses

from contrasweep.data import dataset_spec
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.metrics import final_metrics
from contrasweep.tuning.objectives.prepared import PreparedData, preparation_key
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.store import Heartbeat, Location, ResultsStore, StoreError, StudyRecord, save_study
from contrasweep.tuning.training.pretrain import EpochRecord, pretrain
from contrasweep.tuning.trials.trial import DataCache, Trial, TrialRequest

Request = Callable[..., TrialRequest]


def test_a_trial_reports_and_records_what_pretrain_yields(
    request_of: Request, cache: DataCache, store: ResultsStore, small_data: Callable[[str], PreparedData]
) -> None:
    request = request_of(4, {"temperature": 0.25})
    expected = [r.metrics for r in pretrain(request.experiment, data=small_data("colour-digits"))]
    trial = Trial(request, cache)
    first = trial.advance()
    assert (first.epoch, first.finished, first.error, first.metrics) == (0, False, None, expected[0])
    running = row_of(store, 4)
    assert running["status"] == "interrupted"  # running, and no driver that vouches for it
    reports = [first, *finish(trial)]
    assert [report.epoch for report in reports] == [0, 1, 2, 3]
    assert [report.finished for report in reports] == [False, False, False, True]
    assert [report.metrics for report in reports] == expected
    row = row_of(store, 4)
    told = {"status": "completed", "epoch": 3, "epochs": 3, "attempt": 1, "seed": 0, "error": None}
    told |= {"phase": "search", "config": request.experiment.identity(), "hp.temperature": 0.25}
    assert {name: row[name] for name in told} == told
    assert metrics_of(row) == expected[-1]
    epochs = store.epochs(STUDY).to_pylist()
    assert [epoch["epoch"] for epoch in epochs] == [0, 1, 2, 3]
    assert [metrics_of(epoch) for epoch in epochs] == expected
    assert row["train_seconds"] == pytest.approx(sum(report.train_seconds for report in reports))


def test_the_row_says_running_while_the_driver_lives(
    request_of: Request, cache: DataCache, location: Location, store: ResultsStore
) -> None:
    trial = Trial(request_of(), cache)
    with Heartbeat(location, STUDY):
        assert store.trials(STUDY).num_rows == 0
        trial.advance()
        assert row_of(store)["status"] == "running"


@pytest.fixture
def any_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows may hold a rate that the study's space does not, so that a trial diverges."""
    monkeypatch.setattr("contrasweep.tuning.store.cells._outside", lambda *_: None)


def test_a_divergence_is_recorded_and_the_trial_goes_no_further(
    request_of: Request, cache: DataCache, store: ResultsStore, any_value: None
) -> None:
    trial = Trial(request_of(0, {"optimizer.lr": 1e30}), cache)
    *_, last = finish(trial)
    assert last.error is not None
    assert "loss nan at epoch 1" in last.error
    assert not last.finished
    row = row_of(store)
    assert (row["status"], row["error"]) == ("failed", last.error)
    assert [epoch["epoch"] for epoch in store.epochs(STUDY).to_pylist()] == [0]
    with pytest.raises(StoreError, match="has ended"):
        trial.advance()
    assert row_of(store) == row


def test_whatever_else_breaks_is_recorded_with_its_type(
    request_of: Request,
    store: ResultsStore,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_disk(*_: Any) -> PreparedData:
        raise OSError("the disk is gone")

    monkeypatch.setattr("contrasweep.tuning.trials.trial.prepare_data", no_disk)
    trial = Trial(request_of(), DataCache())
    with caplog.at_level(logging.ERROR):
        report = trial.advance()
    assert report.error == "OSError: the disk is gone"
    assert caplog.records[0].exc_info is not None  # the traceback, for whoever has to find out
    row = row_of(store)
    assert (row["status"], row["error"]) == ("failed", "OSError: the disk is gone")


def test_a_trial_that_could_not_begin_goes_no_further_either(
    request_of: Request, cache: DataCache, store: ResultsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(
            "contrasweep.tuning.trials.trial.pretrain",
            lambda *_, **__: (_ for _ in ()).throw(OSError("gone")),
        )
        trial = Trial(request_of(), cache)
        assert trial.advance().error == "OSError: gone"
    row = row_of(store)
    with pytest.raises(StoreError, match="has ended"):
        trial.advance()
    assert row_of(store) == row


def test_after_the_last_epoch_there_is_nothing_to_advance(
    request_of: Request, cache: DataCache, store: ResultsStore
) -> None:
    trial = Trial(request_of(), cache)
    finish(trial)
    row = row_of(store)
    with pytest.raises(StoreError, match="has ended"):
        trial.advance()
    assert row_of(store) == row


def test_the_next_trial_is_not_touched_by_one_that_failed(
    request_of: Request, cache: DataCache, store: ResultsStore, any_value: None
) -> None:
    finish(Trial(request_of(0, {"optimizer.lr": 1e30}), cache))
    assert finish(Trial(request_of(1), cache))[-1].finished
    assert [row["status"] for row in store.trials(STUDY).to_pylist()] == ["failed", "completed"]


def test_tensorboard_shows_every_epoch(request_of: Request, cache: DataCache) -> None:
    request = request_of()
    reports = finish(Trial(request, cache))
    assert scalars_of(request, "val/ridge_accuracy") == [
        (report.epoch, pytest.approx(report.metrics["val.ridge_accuracy"])) for report in reports
    ]
    assert [step for step, _ in scalars_of(request, "train/loss")] == [1, 2, 3]
    # Its HParams tab lists the last value: that of a stopped trial would be the untrained encoder's.
    assert [step for step, _ in scalars_of(request, "val/accuracy")] == [3]
    untrained = pytest.approx(reports[0].metrics["val.accuracy"])
    assert scalars_of(request, "val/untrained_accuracy") == [(0, untrained)]


def test_tensorboard_tells_failure_from_success(request_of: Request, cache: DataCache) -> None:
    good, bad = request_of(0), request_of(1, {"optimizer.lr": 1e30})
    finish(Trial(good, cache))
    finish(Trial(bad, cache))
    assert session_statuses(good) == [STATUS_SUCCESS]
    assert session_statuses(bad) == [STATUS_FAILURE]


def test_where_results_are_not_on_this_machine_there_are_no_events(
    request_of: Request, cache: DataCache, tmp_path: Path, plan: SweepPlan
) -> None:
    (tmp_path / "bucket").mkdir()
    remote = Location(fs.SubTreeFileSystem(str(tmp_path / "bucket"), fs.LocalFileSystem()), "r", "mem://r")
    save_study(remote, plan.record())
    here = request_of()
    request = TrialRequest(remote, here.study, 0, here.experiment, here.values)
    assert request.events_folder is None
    assert finish(Trial(request, cache))[-1].finished
    assert ResultsStore(remote).trials(STUDY)["status"].to_pylist() == ["completed"]
    assert not list((tmp_path / "bucket" / "r").glob("tensorboard*"))


def test_what_is_added_at_the_end_is_in_the_result_and_the_report(
    plan: SweepPlan, location: Location, cache: DataCache, store: ResultsStore
) -> None:
    searched = plan.record()
    columns = searched.columns.model_copy(
        update={
            "metrics": (
                *searched.columns.metrics,
                *final_metrics(METHODS["infonce"], dataset_spec("colour-digits"))[3:],
            )
        }
    )
    record: StudyRecord = searched.model_copy(update={"columns": columns})
    save_study(location, record)
    values = plan.space.defaults()
    request = TrialRequest(location, record, 0, plan.experiment_of(values), values, phase="final")
    asked: list[int] = []

    def at_end(last: EpochRecord) -> dict[str, float]:
        asked.append(last.epoch)
        return {"test.accuracy": 0.875, "test.untrained_accuracy": 0.5}

    *_, last = finish(Trial(request, cache, at_end=at_end))
    assert asked == [3]
    assert last.metrics["test.accuracy"] == 0.875
    row = row_of(store)
    assert row["phase"] == "final"
    assert (row["metric.test.accuracy"], row["metric.test.untrained_accuracy"]) == (0.875, 0.5)
    assert row["metric.val.accuracy"] == last.metrics["val.accuracy"]
    assert store.epochs(STUDY)["metric.test.accuracy"].to_pylist() == [None, None, None, 0.875]


def test_an_end_that_breaks_fails_the_trial(
    request_of: Request, cache: DataCache, store: ResultsStore
) -> None:
    def broken(_: EpochRecord) -> dict[str, float]:
        raise ValueError("no test split")

    *_, last = finish(Trial(request_of(), cache, at_end=broken))
    assert last.error == "ValueError: no test split"
    assert row_of(store)["status"] == "failed"


def test_closing_lets_go_and_may_be_repeated(request_of: Request, cache: DataCache) -> None:
    trial = Trial(request_of(), cache)
    trial.close()
    trial.advance()
    trial.close()
    trial.close()


def test_prepared_data_is_kept_while_it_fits(
    request_of: Request, small_data: Callable[[str], PreparedData], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []

    def prepare(experiment: Experiment, *_: Any) -> PreparedData:
        loaded.append(preparation_key(experiment))
        return small_data(experiment.dataset)

    monkeypatch.setattr("contrasweep.tuning.trials.trial.prepare_data", prepare)
    cache, experiment = DataCache(), request_of().experiment
    first = cache.get(experiment, None)
    assert cache.get(experiment.with_values({"seed": 5, "temperature": 0.9}), None) is first
    assert len(loaded) == 1
    cache.get(experiment.with_values({"validation.seed": 5}), None)
    cache.get(experiment, None)
    cache.get(experiment, Path("/elsewhere"))
    assert len(loaded) == 4


def test_a_request_travels(request_of: Request) -> None:
    request = request_of(3)
    again = pickle.loads(pickle.dumps(request))
    assert (again.trial, again.experiment, again.values) == (3, request.experiment, request.values)
    assert again.checkpoint_path == request.checkpoint_path
    assert again.location.path("x") == request.location.path("x")
