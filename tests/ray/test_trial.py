"""One trial: it stops when another worker has taken it over, and TensorBoard shows its seeds together."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from studies import EPOCHS, small_plan
from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer
from tensorboard.plugins.hparams import metadata

from contrasweep.models import load_encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.objectives.prepared import Prepared
from contrasweep.tuning.planning.best_config import BestConfig
from contrasweep.tuning.planning.final_plan import plan_final_runs
from contrasweep.tuning.planning.resources import Resources
from contrasweep.tuning.ray.final_worker import run_one
from contrasweep.tuning.results.encoders import encoder_path
from contrasweep.tuning.store import ResultsStore, TrialOvertaken, open_location, save_study
from contrasweep.tuning.trials.checkpoints import RAREST_SECONDS
from contrasweep.tuning.trials.trial import DataCache, Trial, TrialRequest


@pytest.fixture
def request_(tmp_path: Path) -> TrialRequest:
    """Trial 0 of the small study."""
    plan = small_plan(tmp_path, values={"probes.max_steps": 5})
    location, record = open_location(tmp_path, writable=True), plan.record()
    save_study(location, record)
    values = plan.space.defaults()
    return TrialRequest(location, record, 0, plan.experiment_of(values), values, data_root=plan.data_root)


def leaps() -> Iterator[float]:
    """A clock that makes a checkpoint due after every epoch."""
    now = 0.0
    while True:
        yield now
        now += 2 * RAREST_SECONDS


def test_who_comes_back_from_the_dead_stops_and_touches_nothing(request_: TrialRequest) -> None:
    data = DataCache()

    def begin() -> Trial:
        clock = leaps()
        return Trial(request_, data, clock=lambda: next(clock))

    first, second = begin(), begin()
    assert [first.advance().epoch for _ in range(2)] == [0, 1]
    first._checkpoints.wait()
    assert second.advance().epoch == 2, "it goes on from the checkpoint"
    second._checkpoints.wait()
    kept = request_.location.read(request_.checkpoint_path)
    with pytest.raises(TrialOvertaken, match="trial 0 was taken over"):
        first.advance()
    assert request_.location.read(request_.checkpoint_path) == kept
    assert second.advance().finished
    (row,) = ResultsStore(request_.location).trials("small").to_pylist()
    assert (row["status"], row["attempt"]) == ("completed", 2)
    epochs = ResultsStore(request_.location).epochs("small").to_pylist()
    assert [(row["epoch"], row["attempt"]) for row in epochs] == [(0, 1), (1, 1), (2, 2), (3, 2)]
    assert epochs[-1]["epoch"] == EPOCHS
    assert not (Path(request_.location.root) / request_.checkpoint_path).exists()
    # A worker that begins now finds that the trial has ended, and returns its end.
    report = begin().advance()
    assert (report.finished, report.epoch) == (True, EPOCHS)
    assert report.metrics["val.accuracy"] == row["metric.val.accuracy"]
    assert ResultsStore(request_.location).trials("small").to_pylist() == [row]
    # An unreadable checkpoint that was left over changes nothing.
    request_.location.write(request_.checkpoint_path, b"torn")
    assert begin().advance() == report


def test_a_final_run_that_was_taken_over_leaves_the_encoder_to_the_attempt_that_counts(
    request_: TrialRequest,
) -> None:
    config = BestConfig("small", 0, {}, request_.experiment)
    (plan,) = plan_final_runs(config, Resources(1), seeds=1, results=request_.location.root)
    (final,) = plan.requests
    file = Path(request_.location.root) / encoder_path("small-final", 0, final.experiment.seed)

    def taken_over(epoch: int) -> None:
        if epoch == EPOCHS - 1:
            Trial(final, DataCache()).advance()

    with pytest.raises(TrialOvertaken, match="trial 0 was taken over"):
        run_one(final, taken_over)
    assert not file.exists()
    assert run_one(final).finished
    assert load_encoder(file)


def test_a_trial_whose_encoder_has_no_file_has_failed(
    request_: TrialRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> bytes:
        raise RuntimeError("two weights share their memory")

    monkeypatch.setattr("contrasweep.tuning.training.pretrain.encoder_file", refuse)
    trial = Trial(replace(request_, keeps_encoder=True), DataCache())
    *before, last = (trial.advance().error for _ in range(EPOCHS + 1))
    assert (set(before), last) == ({None}, "RuntimeError: two weights share their memory")


class NoData(DataCache):
    """Data that cannot be read: the trial fails before it trains."""

    def get(self, experiment: Experiment, data_root: Path | None) -> Prepared:
        raise OSError("the disk is gone")


def test_tensorboard_groups_the_seeds_of_a_trial(request_: TrialRequest) -> None:
    for trial in (0, 1):
        for replicate in replace(request_, trial=trial, seeds=2).replicates():
            assert Trial(replicate, NoData()).advance().error
    log = Path(request_.location.root) / "tensorboard"
    events = EventMultiplexer().AddRunsFromDirectory(str(log)).Reload()
    assert {run: _group(events, run) for run in events.Runs()} == {
        "small/00000-0": "small/00000",
        "small/00000-1": "small/00000",
        "small/00001-0": "small/00001",
        "small/00001-1": "small/00001",
    }


def _group(events: EventMultiplexer, run: str) -> str:
    content = events.SummaryMetadata(run, metadata.SESSION_START_INFO_TAG).plugin_data.content
    return str(metadata.parse_session_start_info_plugin_data(content).group_name)
