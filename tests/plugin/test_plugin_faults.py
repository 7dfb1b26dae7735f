"""An error in the code of a plug-in is told with its line, and is no fault of contrasweep."""

import re
import signal
import sys
from bdb import BdbQuit
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from installing import write_metadata

from contrasweep.losses import RanksLost
from contrasweep.plugin_places import plugin_fault, plugin_place, raised_by_plugin, with_plugin_place
from contrasweep.tuning.cli.errors import reporting_errors
from contrasweep.tuning.errors import InputError, SweepFailed, TrainingDiverged, WrongReturn
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.objectives.prepared import Prepared
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.ray.trainer import plugin_errors_in_words
from contrasweep.tuning.store import ResultsStore, open_location, save_study
from contrasweep.tuning.training.plugin_errors import suspecting_plugins
from contrasweep.tuning.trials.gpu_errors import reason_of
from contrasweep.tuning.trials.trial import DataCache, Trial, TrialRequest
from tests.studies import small_plan

TOP = """
from my_plugin.part import add

def forward(views):
    return add(views, None)

def calls(function):
    function()

def compiled(views):
    try:
        forward(views)
    except TypeError as error:
        inner = error
    return inner
"""
PART = "def add(one, other):\n    return one + other\n"
WORDS = "TypeError: unsupported operand type(s) for +: 'int' and 'NoneType'"


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A package of two modules that a distribution brings."""
    write_metadata(tmp_path, "of-mine", {"contrasweep.methods": {"mine": "my_plugin.part:METHOD"}})
    package = tmp_path / "my_plugin"
    package.mkdir()
    (package / "__init__.py").write_text(TOP)
    (package / "part.py").write_text(PART)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("my_plugin", "my_plugin.part"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return import_module("my_plugin")


def raised(call: Callable[[], object]) -> Exception:
    """Return what a call raises."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 of any type
        call()
    return caught.value


def fails() -> None:
    raise KeyError("no fault of a plug-in")


def test_the_innermost_line_of_a_plugin_is_found(plugin: ModuleType) -> None:
    error = raised(lambda: plugin.forward(1))
    assert str(plugin_place(error)) == "my_plugin/part.py:2 in add"
    assert with_plugin_place(error) == f"{WORDS}, at my_plugin/part.py:2 in add"
    # Its own line, too, where it calls what fails elsewhere: torch, say, with tensors that do not fit.
    assert str(plugin_place(raised(lambda: plugin.calls(fails)))) == "my_plugin/__init__.py:8 in calls"


def test_the_line_of_the_error_behind_one_counts(plugin: ModuleType) -> None:
    def wrap() -> None:
        raise RuntimeError("backend='inductor' raised") from plugin.compiled(1)

    assert str(plugin_place(raised(wrap))) == "my_plugin/part.py:2 in add"


def test_other_errors_have_none(plugin: ModuleType) -> None:
    error = raised(fails)
    assert plugin_place(error) is plugin_fault(error) is None
    assert with_plugin_place(error) == "KeyError: 'no fault of a plug-in'"


def test_an_error_of_training_without_a_line_names_the_plugins_of_the_run(
    plugin: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = resolve("infonce", "digits")
    of_plugin = ours.model_copy(update={"method": "mine"})

    def trains(experiment: Experiment, error: Exception) -> None:
        with suspecting_plugins(experiment):
            raise error

    told = "KeyError: 1; the run uses method mine of of-mine, which may be the cause"
    error = raised(lambda: trains(of_plugin, KeyError(1)))
    assert with_plugin_place(error) == plugin_fault(error) == reason_of(error, of_plugin) == told
    with pytest.raises(SystemExit) as end:
        reporting_errors(lambda: trains(of_plugin, KeyError(1)))()
    assert end.value.code == 1
    assert told in " ".join(capsys.readouterr().err.split())
    for other in (
        raised(lambda: trains(ours, KeyError(1))),
        raised(lambda: trains(of_plugin, TrainingDiverged("loss nan"))),
        raised(lambda: trains(of_plugin, OSError(28, "No space left on device"))),
        raised(lambda: trains(of_plugin, raised(lambda: plugin.forward(1)))),
    ):
        assert "the run uses" not in with_plugin_place(other)


def test_a_trial_that_fails_names_the_line(plugin: ModuleType) -> None:
    reason = reason_of(raised(lambda: plugin.forward(1)), resolve("infonce", "digits"))
    assert reason == f"{WORDS}, at my_plugin/part.py:2 in add"


LEFT = "error in the plug-in of-mine, my_plugin/__init__.py:8 in calls: SystemExit: 3"
FAULT = f"error in the plug-in of-mine, my_plugin/part.py:2 in add: {WORDS}"


def test_a_command_shows_the_traceback_and_says_whose_error_it_is(
    plugin: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    def train() -> None:
        plugin.forward(1)

    with pytest.raises(SystemExit) as ended:
        reporting_errors(train)()
    said = capsys.readouterr().err
    assert ended.value.code == 1
    assert said.splitlines()[-1] == f"Error: {FAULT}"
    assert "Traceback" in said
    assert str(Path(str(plugin.__file__)).with_name("part.py")) in said
    assert "fault of contrasweep" not in said


@pytest.mark.usefixtures("plugin")
def test_an_error_outside_of_plugins_is_a_fault_of_contrasweep(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        reporting_errors(fails)()
    assert ended.value.code == 70
    assert "This is a fault of contrasweep. Please report" in capsys.readouterr().err


def test_leaving_the_debugger_is_no_fault() -> None:
    def leave() -> None:
        raise BdbQuit

    with pytest.raises(BdbQuit):
        reporting_errors(leave)()


def test_what_a_plugin_returned_wrongly_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def train() -> None:
        raise WrongReturn("MyLoss must return a scalar or LossTerms, returned float")

    with pytest.raises(SystemExit) as ended:
        reporting_errors(train)()
    assert ended.value.code == 1
    assert capsys.readouterr().err == "Error: MyLoss must return a scalar or LossTerms, returned float\n"


def leaves(plugin: ModuleType) -> None:
    """End the process in the midst of a plug-in."""
    plugin.calls(lambda: sys.exit(3))


def test_a_command_that_a_plugin_ends_says_so(plugin: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        reporting_errors(lambda: leaves(plugin))()
    said = capsys.readouterr().err
    assert ended.value.code == 1
    assert "Traceback" in said
    assert said.splitlines()[-1] == f"Error: {LEFT}"
    with pytest.raises(SystemExit) as others:
        reporting_errors(lambda: sys.exit(5))()
    assert others.value.code == 5


def test_a_worker_that_a_plugin_ends_says_so(plugin: ModuleType) -> None:
    with pytest.raises(SweepFailed, match=re.escape(LEFT)), plugin_errors_in_words():
        leaves(plugin)
    with pytest.raises(SystemExit), plugin_errors_in_words():
        sys.exit(5)


class LeavesPlugin(DataCache):
    """Data for which the code of a plug-in ends the process."""

    def __init__(self, leave: Callable[[], None]) -> None:
        super().__init__()
        self._leave = leave

    def get(self, experiment: Experiment, data_root: Path | None) -> Prepared:
        self._leave()
        raise AssertionError


def test_a_trial_that_a_plugin_ends_fails_as_by_any_error(plugin: ModuleType, tmp_path: Path) -> None:
    plan = small_plan(tmp_path / "results")
    location, record = open_location(tmp_path / "results", writable=True), plan.record()
    save_study(location, record)
    values = plan.space.defaults()
    request = TrialRequest(location, record, 0, plan.experiment_of(values), values)
    report = Trial(request, LeavesPlugin(lambda: leaves(plugin))).advance()
    assert report.error == "SystemExit: 3, at my_plugin/__init__.py:8 in calls"
    (row,) = ResultsStore(location).trials(record.name).to_pylist()
    assert (row["status"], row["error"]) == ("failed", report.error)
    # What no plug-in raised, as Ray does to end a worker, ends this process as before.
    with pytest.raises(SystemExit):
        Trial(replace(request, trial=1), LeavesPlugin(lambda: sys.exit(1))).advance()


def test_a_signal_that_ends_the_process_is_no_fault_of_the_plugin(plugin: ModuleType) -> None:
    def handler(number: int, frame: object) -> None:
        sys.exit(1)

    before = signal.signal(signal.SIGTERM, handler)
    try:
        with pytest.raises(SystemExit) as ended:
            plugin.calls(lambda: signal.raise_signal(signal.SIGTERM))
        assert plugin_place(ended.value) is not None
        assert not raised_by_plugin(ended.value)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_worker_sends_the_line_with_its_error(plugin: ModuleType) -> None:
    def work(call: Callable[[], object]) -> None:
        with plugin_errors_in_words():
            call()

    assert str(raised(lambda: work(lambda: plugin.forward(1)))) == FAULT
    assert isinstance(raised(lambda: work(fails)), KeyError)


@pytest.mark.parametrize("kind", [InputError, TrainingDiverged, RanksLost])
def test_a_worker_keeps_errors_that_say_something_else(plugin: ModuleType, kind: type[Exception]) -> None:
    """They may come through a plug-in, which calls us, and are not its errors."""

    def fail() -> None:
        raise kind("as it is")

    with pytest.raises(kind, match="as it is"), plugin_errors_in_words():
        plugin.calls(fail)
