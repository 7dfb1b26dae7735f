"""A budget of time: no trial begins after it, resumed sweeps count what was spent, and more can be given."""

from pathlib import Path

import pytest
from in_process import without_ray
from studies import tiny_plan

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.early_end import EarlyEnd
from contrasweep.tuning.planning.trial_limits import Limits, seconds_in
from contrasweep.tuning.ray.sweep import resume_sweep, run_sweep
from contrasweep.tuning.results.trials import time_spent
from contrasweep.tuning.store import ResultsStore
from tests.studies import STUDY, PlannedStudy, scored
from tests.studies import small_plan as written_plan


class Clock:
    """A clock that goes on by 60 s whenever a trial is asked for or reports."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 60.0
        return self.now


def test_after_the_budget_no_trial_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    original = EarlyEnd.__init__
    # The defaults of keyword arguments: by this clock, every question takes a minute.
    monkeypatch.setitem(original.__kwdefaults__, "clock", Clock())
    with without_ray():
        done = run_sweep(tiny_plan(tmp_path, trials=8, scheduler="none", limits=Limits(budget=150.0)))
    begun = done.plan.trials
    assert 1 < begun < 8
    assert done.counts == {"completed": begun}
    store = ResultsStore(tmp_path)
    assert store.study("small").require_search().trials == begun
    why = "the budget of 2 min 30 s was spent"
    assert f"No trial began after {begun} of 8, because {why}; --extend {8 - begun} with" in caplog.text
    assert done.ended_early == why
    with without_ray():
        again = resume_sweep("small", tmp_path)
        assert again.counts == {"completed": begun}, "the study has what began"
        more = resume_sweep("small", tmp_path, extend=1, budget=1e6)
    assert more.counts == {"completed": begun + 1}


def test_time_of_earlier_drivers_counts(tmp_path: Path) -> None:
    study = PlannedStudy(written_plan(tmp_path, trials=4, limits=Limits(budget=4.0)))
    study.write(scored((0.5, 0.6, 0.7)))
    spent = time_spent(ResultsStore(tmp_path).tables(STUDY))
    assert spent == pytest.approx(8.0), "the start, and three epochs of two seconds"
    with without_ray():
        done = resume_sweep(STUDY, tmp_path)
    assert done.counts == {"completed": 1}
    assert done.plan.trials == 1


@pytest.mark.parametrize(
    ("text", "seconds"), [("8h", 28_800), ("90m", 5400), ("1h30m", 5400), ("45s", 45), ("0.5d", 43_200)]
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert seconds_in(text, "--budget") == seconds


@pytest.mark.parametrize("text", ["8", "h", "8 hours", "-1h", "0s", "1e3s", "9999d", ""])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--budget: given "):
        seconds_in(text, "--budget")
