"""Costs and means, against cases worked out by hand."""

from dataclasses import replace
from datetime import timedelta

import pytest

from contrasweep.tuning.reports.cost import Cost, cost_of, cost_table, draw_cost
from contrasweep.tuning.results.numbers import mean_and_std
from contrasweep.tuning.results.study import read_study
from contrasweep.tuning.statistics import Summary
from contrasweep.tuning.store import Heartbeat
from tests.studies import CREATED, scored


def test_what_a_study_cost(write_study, store) -> None:
    # Trials run from second 0 to 8 and from 10 to 18; of 3 epochs, 2 train for 1.5 s, all score for 0.5 s.
    write_study([scored(), scored()])
    cost = cost_of(read_study(store, "demo"))
    assert cost == Cost(trials=16.0, train=6.0, evaluate=3.0, running=16.0, wall=18.0, slots=2, epochs=4)
    assert cost.idle == 2.0
    assert cost.other == 7.0
    assert cost.unused == 2 * (18 - 2) - 16


def test_time_of_slots_and_time_by_the_clock_are_told_apart(write_study, store) -> None:
    write_study([scored(), scored()])
    cost = cost_of(read_study(store, "demo"))
    rows = {what: time for what, time, _ in cost_table(cost).rows}
    assert rows["the whole study"] == "18.0 s by the clock"
    assert rows["at least one trial running"] == "16.0 s by the clock"
    assert rows["no trial running"] == "2.0 s by the clock"
    assert rows["a slot free while others ran"] == "16.0 s of slots"
    drawn = draw_cost(cost)
    assert drawn.layout.title.text == "Where 36.0 s of slots went"
    assert drawn.layout.xaxis.title.text == "2 slots, each 18.0 s by the clock"
    assert "no trial in any slot 4.0 s" in drawn.layout.meta["alt"]


def test_shares_are_those_of_the_time_in_trials() -> None:
    # Two trials at a time: 10 s by the clock are 20 s in trials.
    cost = Cost(trials=20.0, train=10.0, evaluate=5.0, running=10.0, wall=10.0, slots=2, epochs=2)
    shares = [share for *_, share in cost_table(cost).rows[:3]]
    assert shares == ["50% of the trials' time", "25% of the trials' time", "25% of the trials' time"]


def test_the_seeds_of_a_trial_share_its_slot(write_study, store) -> None:
    write_study([scored(trial=0), scored(trial=0, seed=1)])
    cost = cost_of(read_study(store, "demo"))
    assert (cost.trials, cost.train) == (8.0, 6.0)


def test_a_running_trial_costs_until_now(write_study, store, location) -> None:
    write_study([scored(status="running")])
    now = CREATED + timedelta(seconds=30)
    with Heartbeat(location, "demo", interval=3600):
        assert cost_of(replace(read_study(store, "demo"), read_at=now)).trials == 30.0


@pytest.mark.parametrize(
    ("summary", "text"),
    [
        (None, None),
        (Summary(0.91234, None, 1), "0.9123"),
        (Summary(0.91234, 0.0286, 5), "0.912 ± 0.029"),
        (Summary(788.4, 301.0, 5), "788 ± 301"),
        (Summary(5228.2, 48.3, 5), "5,228 ± 48"),
        (Summary(0.5, 0.0, 3), "0.5 ± 0"),
    ],
)
def test_means(summary: Summary | None, text: str | None) -> None:
    assert mean_and_std(summary) == text
