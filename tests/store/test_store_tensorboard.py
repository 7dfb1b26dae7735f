import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer
from tensorboard.plugins.hparams import api_pb2, metadata

from contrasweep.tuning.store.tensorboard import TrialEvents, write_experiment

HYPERPARAMETERS = {"kernel": "rbf", "layers": 2, "flip": True, "sigma2": 0.5, "optimizer.lr": None}


@pytest.fixture
def folder(tmp_path: Path, columns) -> Path:
    write_experiment(tmp_path, columns, "val.accuracy", "highest val.accuracy", now=lambda: 5.0)
    for name, end in [
        ("trial-0", "completed"),
        ("trial-1", "stopped"),
        ("trial-2", "failed"),
        ("trial-3", None),
        ("trial-4", "interrupted"),
    ]:
        with closing(TrialEvents(tmp_path / name, now=lambda: 7.0)) as events:
            events.session_start(HYPERPARAMETERS, group=name)
            for epoch in range(3):
                events.scalars(epoch, {"loss": 1.0 - epoch / 4, "val.accuracy": None if epoch == 0 else 0.5})
            if end is not None:
                events.session_end(end)
    return tmp_path


def load(folder: Path) -> EventMultiplexer:
    return EventMultiplexer().AddRunsFromDirectory(str(folder)).Reload()


def content(events: EventMultiplexer, run: str, tag: str) -> bytes:
    return events.SummaryMetadata(run, tag).plugin_data.content


def test_scalars_have_readable_names(folder):
    events = load(folder)
    assert [(s.step, s.value) for s in events.Scalars("trial-0", "loss")] == [(0, 1.0), (1, 0.75), (2, 0.5)]
    assert [s.step for s in events.Scalars("trial-0", "val/accuracy")] == [1, 2]


def test_hyperparameters_keep_their_types(folder):
    info = metadata.parse_session_start_info_plugin_data(
        content(load(folder), "trial-0", metadata.SESSION_START_INFO_TAG)
    )
    values = {name: (value.WhichOneof("kind"), value) for name, value in info.hparams.items()}
    assert {name: kind for name, (kind, _) in values.items()} == {
        "kernel": "string_value",
        "layers": "number_value",
        "flip": "bool_value",
        "sigma2": "number_value",
    }
    assert values["layers"][1].number_value == 2
    assert values["kernel"][1].string_value == "rbf"
    assert (info.group_name, info.start_time_secs) == ("trial-0", 7.0)


@pytest.mark.parametrize(
    ("run", "status"),
    [
        ("trial-0", api_pb2.STATUS_SUCCESS),
        ("trial-1", api_pb2.STATUS_SUCCESS),
        ("trial-2", api_pb2.STATUS_FAILURE),
        ("trial-4", api_pb2.STATUS_UNKNOWN),
    ],
)
def test_a_trial_that_did_not_succeed_does_not_show_as_a_success(folder, run, status):
    end = metadata.parse_session_end_info_plugin_data(
        content(load(folder), run, metadata.SESSION_END_INFO_TAG)
    )
    assert end.status == status


def test_a_killed_trial_has_no_end(folder):
    with pytest.raises(KeyError):
        content(load(folder), "trial-3", metadata.SESSION_END_INFO_TAG)


def test_the_experiment_lists_hyperparameters_and_metrics(folder):
    experiment = metadata.parse_experiment_plugin_data(content(load(folder), ".", metadata.EXPERIMENT_TAG))
    assert {info.name: info.type for info in experiment.hparam_infos} == {
        "kernel": api_pb2.DATA_TYPE_STRING,
        "sigma2": api_pb2.DATA_TYPE_FLOAT64,
        "optimizer.lr": api_pb2.DATA_TYPE_FLOAT64,
        "layers": api_pb2.DATA_TYPE_FLOAT64,
        "flip": api_pb2.DATA_TYPE_BOOL,
    }
    assert [info.name.tag for info in experiment.metric_infos] == ["val/accuracy", "loss"]


def test_a_resumed_attempt_replaces_the_epochs_it_repeats(tmp_path):
    with closing(TrialEvents(tmp_path / "t", now=lambda: 1.0)) as events:
        for epoch in range(4):
            events.scalars(epoch, {"loss": 1.0})
    with closing(TrialEvents(tmp_path / "t", resumed_from=1, now=lambda: 2.0)) as events:
        events.scalars(2, {"loss": 2.0})
    scalars = load(tmp_path).Scalars("t", "loss")
    assert [(s.step, s.value) for s in scalars] == [(0, 1.0), (1, 1.0), (2, 2.0)]


def test_a_later_attempt_is_read_later_also_as_the_tenth_file_of_a_second(tmp_path, monkeypatch):
    """Names of event files are compared as text: their numbers, 9 and 10, are in the other order."""
    from tensorboard.summary.writer import event_file_writer

    count = event_file_writer.AtomicCounter(9)
    # The third file is one of the next second.
    clock = SimpleNamespace(time=lambda: 1e9 + (count._value >= 11))
    monkeypatch.setattr(event_file_writer, "_global_uid", count)
    monkeypatch.setattr(event_file_writer, "time", clock)
    monkeypatch.setattr("contrasweep.tuning.store.tensorboard._BETWEEN_NAMES", 0.0)
    test_a_resumed_attempt_replaces_the_epochs_it_repeats(tmp_path)


def test_a_value_that_cannot_be_shown_is_refused(tmp_path):
    with closing(TrialEvents(tmp_path / "t")) as events, pytest.raises(TypeError, match="'widths'"):
        events.session_start({"widths": [1, 2]}, group="t")


def test_events_that_cannot_be_written_are_given_up(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    with closing(TrialEvents(tmp_path / "file" / "trial-0")) as events:
        events.session_start(HYPERPARAMETERS, group="trial-0")
        events.scalars(1, {"loss": 1.0})
        events.session_end("completed")
    (warning,) = caplog.messages
    assert warning.startswith(f"TensorBoard's events in {tmp_path / 'file' / 'trial-0'} are given up: ")


def test_the_store_needs_no_torch_and_no_ray():
    code = (
        "import sys, contrasweep.tuning.store, contrasweep.tuning.store.tensorboard;"
        "print([name for name in ('torch', 'ray', 'tensorflow') if name in sys.modules])"
    )
    root = Path(__file__).parents[2]
    run = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
