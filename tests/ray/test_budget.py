"""A budget of time: no trial begins after it, resumed sweeps count what was spent, and more can be given."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from in_process import without_ray
from studies import tiny_plan
from typer.testing import CliRunner

from contrasweep.tuning.cli import app
from contrasweep.tuning.durations import seconds_in
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.early_end import EarlyEnd
from contrasweep.tuning.planning.past_trials import past_trials
from contrasweep.tuning.ray.earlier_drivers import earlier_trials
from contrasweep.tuning.ray.searcher import StoreSearcher
from contrasweep.tuning.ray.sweep import resume_sweep, run_sweep
from contrasweep.tuning.reports.cost import cost_of
from contrasweep.tuning.results.study import read_study
from contrasweep.tuning.results.trials import time_spent, trial_outcomes
from contrasweep.tuning.store import ResultsStore, TrialInfo, TrialWriter
from contrasweep.tuning.store.reopen import reopen_failed
from tests.studies import STUDY, PlannedStudy, Run, scored
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
        done = run_sweep(tiny_plan(tmp_path, trials=8, scheduler="none", budget=150.0))
    begun = done.plan.search.trials
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
    study = PlannedStudy(written_plan(tmp_path, trials=4, budget=4.0))
    study.write(scored((0.5, 0.6, 0.7)))
    spent = time_spent(ResultsStore(tmp_path).tables(STUDY))
    assert spent == pytest.approx(8.0), "the start, and three epochs of two seconds"
    with without_ray():
        done = resume_sweep(STUDY, tmp_path)
    assert done.counts == {"completed": 1}
    assert done.plan.search.trials == 1


def test_the_same_command_ends_early_again_and_with_a_larger_budget_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plan = written_plan(tmp_path, trials=3, budget=4.0, values={"probes.max_steps": 5})
    study = PlannedStudy(plan)
    study.write(scored())

    def command(budget: str) -> None:
        caplog.clear()
        named = ["--name", STUDY, "--results", str(tmp_path), "--trials", "3", "--budget", budget, "--resume"]
        with without_ray():
            done = CliRunner().invoke(app, ["sweep", "fair-cclk", *named], catch_exceptions=False)
        assert done.exit_code == 0, done.output

    for _ in range(2):
        command("4s")
        assert "No trial began after 1 of 3, because the budget of 4.0 s was spent" in caplog.text
        assert study.store.study(STUDY).require_search().trials == 1
    command("1h")
    assert study.store.trials(STUDY)["trial"].to_pylist() == [0, 1, 2]
    assert study.store.study(STUDY).require_search().trials == 3


def test_a_study_that_ended_early_has_room_for_a_trial_that_its_store_lacks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plan = written_plan(tmp_path, trials=9, budget=4.0, values={"probes.max_steps": 5})
    study = PlannedStudy(plan)
    # The driver was killed before trial 1 had its first row.
    study.write(scored(trial=0), scored(trial=2))
    with without_ray():
        done = resume_sweep(STUDY, tmp_path)
        assert (done.counts, done.plan.search.trials) == ({"completed": 2}, 3)
        assert "No trial began after 2 of 9" in caplog.text
        assert "--extend 6 with a larger --budget adds the others" in caplog.text
        caplog.clear()
        assert resume_sweep(STUDY, tmp_path).counts == {"completed": 2}
        assert "--resume with a larger --budget adds the others" in caplog.text
        search = study.store.study(STUDY).require_search()
        assert (search.trials, search.not_begun) == (3, 6), "a second early end forgets no trial"
        resume_sweep(STUDY, tmp_path, budget=1e6)
    assert study.store.trials(STUDY)["trial"].to_pylist() == list(range(9))
    search = study.store.study(STUDY).require_search()
    assert (search.trials, search.not_begun) == (9, 0)


def _killed_after_five_hours(study: PlannedStudy, begin: datetime, first: int) -> None:
    """Write an attempt of trial 0 from epoch `first` on, an hour each, whose driver is killed."""
    now = iter([begin + timedelta(hours=n) for n in range(6)])
    info = TrialInfo(0, 0, "search", "c", study.plan.space.defaults(), 100)
    writer = TrialWriter(study.location, study.record, info, clock=lambda: 0.0, now=lambda: next(now))
    writer.start(epoch=first - 1 if first else None)
    for epoch in range(first, first + 5):
        writer.add_epoch(epoch, {}, seconds=3600.0, train_seconds=3600.0)
    writer.flush()


def test_each_attempt_of_a_trial_counts_and_no_time_between_them(tmp_path: Path) -> None:
    study = PlannedStudy(written_plan(tmp_path, trials=2))
    for day in range(3):
        _killed_after_five_hours(study, study.plan.created + timedelta(days=day), 5 * day)
    assert time_spent(study.store.tables(STUDY)) == 15 * 3600
    cost = cost_of(read_study(study.store, STUDY))
    assert (cost.running, cost.trials, cost.train) == (15 * 3600, 15 * 3600, 15 * 3600)
    assert cost.wall == (2 * 24 + 5) * 3600, "a page tells pauses apart"


def _a_day_ago(results: Path, *runs: Run, **options: Any) -> PlannedStudy:
    """A study whose trials ran a day ago, for seconds."""
    plan = replace(written_plan(results, **options), created=datetime.now(UTC) - timedelta(days=1))
    study = PlannedStudy(plan)
    study.write(*runs)
    return study


def test_the_time_since_a_failure_does_not_count_when_its_trial_runs_again(tmp_path: Path) -> None:
    study = _a_day_ago(tmp_path, scored(), scored((0.5, 0.6), status="failed", error="disk full"))
    assert reopen_failed(study.location, study.record) == [1]
    assert time_spent(study.store.tables(STUDY)) < 60


def test_the_time_since_a_kill_does_not_count_when_an_open_seed_is_ended(tmp_path: Path) -> None:
    study = _a_day_ago(
        tmp_path, scored(status="stopped", trial=0), scored(status="running", trial=0, seed=1), seeds=2
    )
    assert trial_outcomes(study.store.trials(STUDY), study.record)[0].open_seeds == (1,)
    assert earlier_trials(study.plan, study.record, study.location).seconds < 60
    assert trial_outcomes(study.store.trials(STUDY), study.record)[0].open_seeds == ()


def test_the_time_since_a_kill_does_not_count_when_the_new_worker_dies_at_its_start(tmp_path: Path) -> None:
    study = _a_day_ago(tmp_path, scored(status="running"))
    tables = study.store.tables(STUDY)
    past = past_trials(trial_outcomes(tables.trials, study.record), tables.epochs, study.record)
    searcher = StoreSearcher(study.plan, study.record, study.location, past)
    searcher.suggest("again")
    searcher.on_trial_start("again")
    searcher.on_trial_complete("again", error=True)
    assert study.store.trials(STUDY)["status"].to_pylist() == ["failed"]
    assert time_spent(study.store.tables(STUDY)) < 60


@pytest.mark.parametrize(
    ("text", "seconds"), [("8h", 28_800), ("90m", 5400), ("1h30m", 5400), ("45s", 45), ("0.5d", 43_200)]
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert seconds_in(text, "--budget") == seconds


@pytest.mark.parametrize("text", ["8", "h", "8 hours", "-1h", "0s", "1e3s", "9999d", ""])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--budget: given "):
        seconds_in(text, "--budget")
