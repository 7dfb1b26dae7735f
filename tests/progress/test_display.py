"""Progress on terminals, in files, in notebooks, and in functions of the caller."""

import logging
import sys
import threading
from dataclasses import replace
from io import StringIO
from itertools import count
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from contrasweep.tuning.progress.display import Lines, Notebook, Shown, Terminal, following, shown_on
from contrasweep.tuning.progress.forecast import Forecast
from contrasweep.tuning.progress.lines import runs_line, sweep_line, training_line
from contrasweep.tuning.progress.states import RunsProgress, SweepProgress, TrainingProgress
from contrasweep.tuning.progress.tracker import SweepTracker

SWEEP = SweepProgress(
    planned=24,
    epochs=10,
    metric="val.accuracy",
    running={3: 4, 5: 0},
    counts={"completed": 3, "stopped": 5},
    best=(4, 0.91234),
    left=160.0,
)


def test_a_sweep_in_a_line() -> None:
    assert sweep_line(SWEEP, elapsed=80) == (
        "8/24 trials (3 completed, 5 stopped) · trial 3: epoch 4/10, trial 5: epoch 0/10 · "
        "best final val.accuracy 0.9123 (trial 4) · 1:20 spent · about 2:40 left"
    )
    many = SweepProgress(24, 10, "m", running={0: 1, 1: 7, 2: 3, 3: 0})
    assert sweep_line(many, 5) == "0/24 trials · 4 running, trial 1: epoch 7/10 · 0:05 spent"
    starting = SweepProgress(24, 10, "m", running={0: 0}, stage="starting Ray")
    assert sweep_line(starting, 5) == "0/24 trials · starting Ray · 0:05 spent"


def test_runs_and_a_training_in_a_line() -> None:
    runs = RunsProgress(1, 5, {"trial 0, seed 7": (3, 20)}, left=61.0)
    assert (
        runs_line(runs, 10) == "1/5 final runs · trial 0, seed 7: epoch 3/20 · 0:10 spent · about 1:01 left"
    )
    step = TrainingProgress(2, 20, 120, 390, left=None)
    assert training_line(step, 3) == "epoch 2/20: step 120/390 · 0:03 spent"
    assert training_line(TrainingProgress(2, 20, 390, 390, 9.0), 3) == "epoch 2/20: scoring · 0:03 spent"


def test_a_terminal_shows_one_text_at_a_time_and_breaks_it_between_words() -> None:
    stream = StringIO()
    terminal = Terminal(stream, width=lambda: 31)
    terminal.show("a text of more than thirty columns")
    terminal.show("short")
    terminal.clear()
    erased = "\x1b[2F\x1b[J", "\x1b[1F\x1b[J"
    assert stream.getvalue() == f"a text of more than thirty\ncolumns\n{erased[0]}short\n{erased[1]}"


def test_a_file_gets_a_line_now_and_then_and_the_last_one() -> None:
    clock = iter([0.0, 5.0, 16.0, 16.0, 17.0])
    stream = StringIO()
    lines = Lines(stream, lambda: next(clock))
    for text in ("first", "too soon", "later", "last"):
        lines.show(text)
    lines.close()
    lines.close()
    assert stream.getvalue() == "first\nlater\nlast\n"


def test_several_studies_are_told_apart() -> None:
    stream = StringIO()
    Shown(Lines(stream, lambda: 0.0), lambda: 0.0).study("compared-infonce", SWEEP)
    assert stream.getvalue().startswith("compared-infonce: 8/24 trials")


def test_a_training_is_shown_twice_a_second() -> None:
    stream, clock = StringIO(), iter([0.0, 0.1, 0.6, 0.7])
    shown = Shown(Lines(stream, lambda: 0.0), lambda: next(clock))
    for step in range(1, 4):
        shown.training(TrainingProgress(1, 5, step, 9))
    assert stream.getvalue() == "epoch 1/5: step 2/9 · 0:01 spent\n"


def test_while_nothing_is_reported_the_time_goes_on() -> None:
    stream, clock = StringIO(), SimpleNamespace(now=0.0)
    shown = Shown(Terminal(stream, width=lambda: 80), lambda: clock.now)
    starting = SweepProgress(24, 10, "m", stage="starting Ray")
    shown.progress(starting, "compared: ")
    for clock.now in (0.5, 1.0, 1.25, 2.0):
        shown.tick()
    lines = [line for line in stream.getvalue().splitlines() if "spent" in line]
    told = [line.rpartition("\x1b[J")[2] for line in lines]
    times = ("0:00", "0:01", "0:01", "0:02")
    assert told == [f"compared: 0/24 trials · starting Ray · {time} spent" for time in times]


@pytest.mark.parametrize("what", ["clear", "training"])
def test_no_tick_shows_what_was_taken_away_or_a_time_left_that_stands(what: str) -> None:
    stream, clock = StringIO(), SimpleNamespace(now=0.0)
    shown = Shown(Lines(stream, lambda: 0.0), lambda: clock.now)
    shown.stage("starting workers")
    clock.now = 5.0
    if what == "clear":
        shown.clear()
    else:
        shown.training(TrainingProgress(1, 5, 2, 9))
    written = stream.getvalue()
    clock.now = 20.0
    shown.tick()
    assert stream.getvalue() == written == "starting workers · 0:00 spent\n"


def test_the_time_goes_on_while_an_epoch_is_scored() -> None:
    stream, clock = StringIO(), SimpleNamespace(now=0.0)
    shown = Shown(Terminal(stream, width=lambda: 80), lambda: clock.now)
    shown.training(TrainingProgress(1, 5, 9, 9))
    clock.now = 3.0
    shown.tick()
    assert stream.getvalue().endswith("epoch 1/5: scoring · 0:03 spent\n")


def test_what_is_logged_stands_above_the_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, ours = StringIO(), logging.getLogger("contrasweep.data.datasets")
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.StreamHandler(stream)])
    with shown_on(Terminal(stream, width=lambda: 80), tick=3600.0, clock=lambda: 0.0) as shown:
        shown.stage("starting Ray")
        ours.warning("no image of %d classes", 6)
        ours.info("nobody asked for this")
    ours.warning("told as ever")
    shown_twice = "starting Ray · 0:00 spent\n"
    erased = "\x1b[1F\x1b[J"
    assert stream.getvalue().startswith(f"{shown_twice}{erased}no image of 6 classes\n{shown_twice}")
    assert stream.getvalue().endswith(f"{shown_twice}told as ever\n")


def test_a_user_who_has_decided_where_our_records_go_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, ours = StringIO(), logging.getLogger("contrasweep")
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.StreamHandler(stream)])
    monkeypatch.setattr(ours, "handlers", [logging.NullHandler()])
    monkeypatch.setattr(ours, "propagate", False)
    with shown_on(Lines(StringIO()), tick=3600.0):
        ours.warning("silenced")
    assert not stream.getvalue()
    assert not ours.propagate


def test_two_displays_at_once_pass_a_record_on_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, ours = StringIO(), logging.getLogger("contrasweep")
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.StreamHandler(stream)])
    with shown_on(Lines(StringIO()), tick=3600.0), shown_on(Lines(StringIO()), tick=3600.0):
        ours.warning("both")
    ours.warning("after")
    assert stream.getvalue() == "both\nafter\n"


def test_what_is_logged_is_printed_without_handlers_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    with shown_on(Lines(StringIO()), tick=3600.0):
        logging.getLogger("contrasweep.data").warning("told")
    assert capsys.readouterr().err == "told\n"


def test_a_thread_ticks_until_the_end_also_of_a_block_that_fails() -> None:
    again = Event()

    class Twice(Lines):
        def show(self, text: str, share: float | None = None) -> None:
            if threading.current_thread() is not threading.main_thread():
                again.set()

    clock = count()

    def interrupted() -> None:
        with shown_on(Twice(StringIO()), tick=0.001, clock=lambda: float(next(clock))) as shown:
            shown.stage("starting Ray")
            assert again.wait(30)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert "progress" not in [thread.name for thread in threading.enumerate()]


def test_a_display_that_is_gone_ends_the_ticks_and_nothing_else() -> None:
    tried = Event()

    class Gone(Lines):
        def show(self, text: str, share: float | None = None) -> None:
            if threading.current_thread() is not threading.main_thread():
                tried.set()
                raise OSError("the terminal was closed")

    clock = count()
    with shown_on(Gone(StringIO()), tick=0.001, clock=lambda: float(next(clock))) as shown:
        shown.stage("starting Ray")
        assert tried.wait(30)


def test_a_function_of_the_caller_is_called() -> None:
    seen: list[Any] = []
    with following(seen.append) as show:
        assert show is not None
        show(SWEEP)
    assert seen == [SWEEP]


def test_by_default_only_terminals_show_progress(capsys: pytest.CaptureFixture[str]) -> None:
    for asked in (None, False):
        with following(asked) as show:
            assert show is None
    with following(True) as show:
        assert show is not None
        show(SWEEP)
    assert capsys.readouterr().err.startswith("8/24 trials")


class Page:
    """Keeps what a notebook is told to show: the HTML of each text, and whether it replaces another."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, str]] = []

    def display(self, content: dict[str, str], raw: bool, display_id: bool) -> "Page":
        assert (raw, display_id) == (True, True)
        self.shown.append(("new", content["text/html"]))
        return self

    def update(self, content: dict[str, str], raw: bool) -> None:
        assert content["text/plain"]
        self.shown.append(("again", content["text/html"]))


def test_a_notebook_rewrites_one_output_and_leaves_the_last_text(monkeypatch: pytest.MonkeyPatch) -> None:
    page, shell = Page(), SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=page.display))
    with following(None) as show:
        assert show is not None
        show(SWEEP)
        show(replace(SWEEP, counts={"completed": 24}, running={}))
    (first, begun), *_, (last, ended) = page.shown
    assert (first, last) == ("new", "again")
    # Eight trials have ended, and one has trained four of its ten epochs: 8.4 of 24.
    assert '<progress value="0.350"' in begun
    assert ended.startswith("<div>24/24 trials (24 completed)")


def test_a_notebook_gets_a_few_texts_a_second_and_always_the_last() -> None:
    page, clock = Page(), SimpleNamespace(now=0.0)
    notebook = Notebook(page.display, lambda: clock.now)
    for number in range(100):
        clock.now = number / 64
        notebook.show(f"<{number}>", number / 100)
    notebook.close()
    assert [html.partition("&lt;")[2].partition("&gt;")[0] for _, html in page.shown] == [
        *map(str, range(0, 100, 13)),
        "99",
    ]
    assert page.shown[-1] == ("again", "<div>&lt;99&gt;</div>")


def test_a_notebook_in_which_nothing_was_shown_gets_no_output() -> None:
    page = Page()
    Notebook(page.display).close()
    assert page.shown == []


def test_how_much_is_done_counts_the_epochs_of_what_runs() -> None:
    assert RunsProgress(1, 4, {"trial 0, seed 7": (5, 20)}).share == pytest.approx(1.25 / 4)
    assert SweepProgress(2, 10, "m", {1: 10}, {"completed": 1, "failed": 1}).share == 1.0


def test_a_sweep_whose_time_is_over_before_its_first_trial_is_done() -> None:
    tracker = SweepTracker(3, "val.accuracy", Forecast(5))
    assert tracker.progress(not_begun=3).share == 1.0
    assert RunsProgress(0, 0).share == 1.0
