"""The time that is left, on synthetic sweeps with a fake clock: mostly true within a factor of two."""

from functools import cache
from typing import Any

import pytest

from contrasweep.tuning.progress.forecast import Forecast, TimeLeft
from contrasweep.tuning.progress.lines import sweep_line
from contrasweep.tuning.progress.states import SweepProgress
from contrasweep.tuning.progress.tracker import RunsTracker, SweepTracker, TrainingTracker
from tests.progress.schedules import Schedule

SEEDS = range(3)

DEMO = {"trials": 24, "epochs": 10, "rungs": (1, 3, 9), "slots": 2, "seconds": 6.0}
MANY = {"trials": 60, "epochs": 30, "rungs": (3, 9, 27), "slots": 8, "seconds": 20.0}
NO_STOPS = {"trials": 24, "epochs": 10, "rungs": (), "slots": 2, "seconds": 10.0}
LONG = {"trials": 40, "epochs": 60, "rungs": (6, 18, 54), "slots": 4, "seconds": 30.0}


@cache
def _reports(seed: int, **settings: Any) -> list[tuple[float, TimeLeft | None]]:
    """The reports of one synthetic sweep, which two tests look at: the time, and what is said to be left."""
    return list(Schedule(seed=seed, **settings).run())


@pytest.mark.parametrize(
    ("settings", "share"),
    [(DEMO, 0.8), (MANY, 0.95), (NO_STOPS, 0.99), (LONG, 0.85)],
    ids=["demo", "many", "no stops", "long"],
)
def test_from_the_second_minute_the_time_left_is_right_within_a_factor_of_two(
    settings: dict[str, Any], share: float
) -> None:
    """Until half a minute before the end. How many trials survive to the last epoch, nobody can know."""
    within = []
    for seed in SEEDS:
        reports = _reports(seed, **settings)
        end, _ = reports[-1]
        asked = [(end - now, left) for now, left in reports if 60 <= now <= end - 30]
        within += [left is not None and truth / 2 <= left.seconds <= 2 * truth for truth, left in asked]
    assert sum(within) / len(within) >= share


@pytest.mark.parametrize("settings", [DEMO, MANY, LONG], ids=["demo", "many", "long"])
def test_one_number_is_shown_only_where_it_is_right_within_a_factor_of_two(settings: dict[str, Any]) -> None:
    """If later trials are much better than earlier ones, it errs more often: docs/search-measurements.md."""
    single, covered = [], []
    for seed in SEEDS:
        reports = _reports(seed, **settings)
        end, _ = reports[-1]
        for now, left in reports:
            if left is None or not 60 <= now <= end - 30:
                continue
            shown = sweep_line(
                SweepProgress(2, 1, "m", left=left.seconds, left_between=(left.low, left.high)), now
            )
            if "about" in shown:
                single.append((end - now) / 2 <= left.seconds <= 2 * (end - now))
            else:
                covered.append(left.low <= end - now <= left.high)
    assert sum(single) / len(single) >= 0.9
    assert len(single) >= len(covered)
    assert sum(covered) / len(covered) >= 0.7


class Clock:
    """A clock that stands still until it is told."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def seconds(forecast: Forecast, waiting: int) -> float | None:
    left = forecast.left(waiting)
    return None if left is None else left.seconds


def test_without_a_trained_epoch_nothing_is_forecast() -> None:
    clock = Clock()
    forecast = Forecast(10, clock=clock)
    forecast.begin(0)
    clock.now = 5.0
    forecast.report(0, 0)
    assert seconds(forecast, 3) is None


def test_one_trial_after_another_each_takes_its_start_and_its_epochs() -> None:
    clock = Clock()
    forecast = Forecast(4, clock=clock)
    for trial in range(2):
        forecast.begin(trial)
        clock.now += 3.0
        for epoch in range(5):
            forecast.report(trial, epoch)
            clock.now += 0.0 if epoch == 4 else 2.0
        forecast.end(trial)
    assert seconds(forecast, 5) == pytest.approx(5 * (3.0 + 4 * 2.0))


def test_the_start_of_the_first_workers_is_no_part_of_later_trials() -> None:
    clock = Clock()
    forecast = Forecast(1, clock=clock)
    for trial, start in enumerate((30.0, 2.0)):
        forecast.begin(trial)
        for epoch, took in enumerate((start, 4.0)):
            clock.now += took
            forecast.report(trial, epoch)
        forecast.end(trial)
    assert seconds(forecast, 3) == pytest.approx(3 * (2.0 + 4.0))


def test_running_trials_do_not_wait_too() -> None:
    clock = Clock()
    tracker = SweepTracker(3, "val.accuracy", Forecast(2, clock=clock))
    tracker.begin(0)
    for epoch in (0, 1):
        clock.now = 4.0 * epoch
        tracker.report(0, epoch)
    assert tracker.progress().left == pytest.approx(4.0 + 2 * 8.0)


def test_of_epochs_whose_reports_did_not_arrive_each_counts() -> None:
    clock = Clock()
    forecast = Forecast(6, clock=clock)
    forecast.begin(0)
    for epoch in (0, 2):
        clock.now = 4.0 * epoch
        forecast.report(0, epoch)
    assert seconds(forecast, 0) == 4 * 4.0


def test_one_number_needs_both_ends_within_a_factor_of_two() -> None:
    def shown(low: float, high: float) -> str:
        return sweep_line(SweepProgress(2, 1, "m", left=60.0, left_between=(low, high)), 0.0)

    assert shown(30.0, 120.0).endswith("about 1:00 left")
    assert shown(20.0, 90.0).endswith("0:20 to 1:30 left")
    assert shown(40.0, 150.0).endswith("0:40 to 2:30 left")


def test_the_time_that_a_running_epoch_takes_already_counts() -> None:
    clock = Clock()
    forecast = Forecast(3, clock=clock)
    forecast.begin(0)
    forecast.report(0, 0)
    clock.now = 10.0
    forecast.report(0, 1)
    assert seconds(forecast, 0) == 20.0
    clock.now = 14.0
    assert seconds(forecast, 0) == 16.0


def test_epochs_that_are_reported_together_count_from_when_they_ended() -> None:
    clock = Clock()
    forecast = Forecast(20, clock=clock)
    forecast.begin(0)
    clock.now = 8.0
    for epoch in range(5):
        forecast.report(0, epoch, age=8.0 - 2.0 * epoch)
    assert seconds(forecast, 0) == 16 * 2.0


def test_a_forecast_holds_for_a_while_and_the_time_goes_on() -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 1.0
        return now[0]

    forecast = Forecast(1000, clock=clock)
    forecast.begin(0)
    forecast.report(0, 0)
    forecast.report(0, 1)
    first, drawn = seconds(forecast, 0), now[0]
    second = seconds(forecast, 0)
    assert now[0] == drawn + 1  # one look at the clock: no future is drawn
    assert first is not None
    assert second is not None
    assert 0 < second < first
    now[0] += 25 * drawn
    asked = now[0]
    seconds(forecast, 0)
    assert now[0] > asked + 1


def test_trials_that_a_rung_stops_are_expected_to_be_shorter() -> None:
    def after(stopped: bool) -> float:
        clock = Clock()
        forecast = Forecast(9, (1,), 1 / 3, clock=clock)
        for trial in range(12):
            forecast.begin(trial)
            for epoch in range(2 if stopped else 10):
                forecast.report(trial, epoch)
                clock.now += 1.0
            forecast.end(trial, stopped=stopped)
        return seconds(forecast, 10) or 0.0

    assert after(stopped=True) < 40 < after(stopped=False)


def test_trials_of_an_earlier_driver_say_how_many_go_on() -> None:
    def left(stopped: bool) -> float:
        clock = Clock()
        forecast = Forecast(9, (1,), 1 / 3, clock=clock)
        for _ in range(12):
            forecast.learn(1 if stopped else 9, stopped=stopped)
        forecast.begin(0)
        forecast.report(0, 0)
        clock.now = 1.0
        forecast.report(0, 1)
        return seconds(forecast, 10) or 0.0

    assert left(stopped=True) < 40 < left(stopped=False)


def test_a_worker_that_died_repeats_epochs() -> None:
    clock = Clock()
    forecast = Forecast(3, clock=clock)
    forecast.begin(0)
    for epoch in (0, 1, 0, 1, 2):
        forecast.report(0, epoch)
        clock.now += 10.0
    assert seconds(forecast, 0) == pytest.approx(20.0 - 10.0)


def test_the_best_is_the_completed_trial_with_the_highest_final_score() -> None:
    tracker = SweepTracker(4, "val.accuracy", Forecast(3, clock=Clock()))
    tracker.restore(0, "completed", 3, 0.5)
    tracker.restore(1, "stopped", 1, None)
    assert tracker.progress().best == (0, 0.5)
    tracker.begin(2)
    tracker.report(2, 1)
    assert tracker.progress().running == {2: 1}
    tracker.end(2, "completed", 0.5)
    assert tracker.progress().best == (0, 0.5), "of equal scores the earlier trial's"
    tracker.begin(3)
    tracker.end(3, "completed", 0.7)
    assert tracker.progress().best == (3, 0.7)
    tracker.restore(4, "stopped", 2, 0.9)
    assert tracker.progress().best == (3, 0.7), "only a completed trial can be the best"
    assert tracker.progress().counts == {"completed": 3, "stopped": 2}


def test_final_runs_count_those_that_were_there() -> None:
    clock = Clock()
    tracker = RunsTracker(5, 2, slots=1, clock=clock)
    tracker.begin("trial 0, seed 1", 2)
    tracker.report("trial 0, seed 1", 0)
    clock.now = 4.0
    tracker.report("trial 0, seed 1", 1)
    tracker.report("an unknown one", 1)
    state = tracker.progress()
    assert (state.done, state.planned, state.running) == (2, 5, {"trial 0, seed 1": (1, 2)})
    assert state.left == pytest.approx(4.0 + 2 * 2 * 4.0)
    tracker.end("trial 0, seed 1")
    assert tracker.progress().done == 3


def test_the_stages_before_the_first_report_are_named() -> None:
    tracker = SweepTracker(4, "val.accuracy", Forecast(3, clock=Clock()))
    assert tracker.progress("starting Ray").stage == "starting Ray"
    tracker.begin(0)
    tracker.begin(1)
    assert tracker.progress().stage == "starting workers"
    tracker.start(0)
    assert tracker.progress().stage == "scoring the untrained encoder"
    tracker.report(0, 0)
    assert tracker.progress().stage is None
    tracker.start(0)
    tracker.end(0, "stopped")
    assert tracker.progress().stage == "starting workers"
    tracker.end(1, "failed")
    assert tracker.progress().stage is None


def test_a_trial_that_goes_on_is_not_scored_untrained_again() -> None:
    tracker = SweepTracker(4, "val.accuracy", Forecast(3, clock=Clock()))
    tracker.begin(0, 2)
    tracker.start(0)
    assert (tracker.progress().stage, tracker.progress().running) == (None, {0: 2})


def test_final_runs_name_them_too() -> None:
    tracker = RunsTracker(2, 0, slots=1, clock=Clock())
    tracker.begin("trial 0, seed 1", 2)
    assert tracker.progress().stage == "starting workers"
    tracker.start("trial 0, seed 1")
    assert tracker.progress().stage == "scoring the untrained encoder"
    tracker.report("trial 0, seed 1", 0)
    tracker.start("trial 0, seed 1")
    assert tracker.progress().stage is None


def test_a_training_goes_on_at_the_pace_of_its_steps() -> None:
    clock = Clock()
    tracker = TrainingTracker(2, clock)
    assert tracker.progress(1, 1, 10).left is None
    clock.now = 4.0
    assert tracker.progress(1, 5, 10).left == pytest.approx(15.0)
