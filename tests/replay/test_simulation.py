"""Searches in simulated time: what workers do, what is spent, and which trial is chosen."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from optuna.trial import TrialState

from contrasweep.search_spaces import Space
from contrasweep.tuning.ray.scheduler import InOrder
from contrasweep.tuning.replay.comparison import POINTS, SHARES, SearchOf, Standing, compare
from contrasweep.tuning.replay.searches import OwnSearch
from contrasweep.tuning.replay.simulation import Decision, Finished, History, Job, Run, simulate
from contrasweep.tuning.replay.workload import Workload
from contrasweep.tuning.search import SearchStudy

EPOCHS = 3


class Scripted:
    """Proposes trials 0, 1, ...; `decisions` names those that stop after their first epoch."""

    def __init__(self, decisions: dict[int, Decision], most: int = 100) -> None:
        self.decisions, self.most = decisions, most
        self.begun = 0
        self.seen: list[tuple[object, ...]] = []

    def next(self) -> Job | None:
        if self.begun == self.most:
            return None
        self.begun += 1
        return Job(self.begun - 1, {"number": self.begun - 1})

    def report(self, trial: int, epoch: int, score: float) -> Decision:
        self.seen.append((trial, epoch, score))
        return self.decisions.get(trial, "go on") if epoch == 1 else "go on"

    def end(self, trial: int, epoch: int, last: float, final: float | None) -> None:
        self.seen.append((trial, epoch, last, final))


def run_of(values, rng):  # type: ignore[no-untyped-def]
    number = float(values["number"])
    return Run(np.array([0.1, 0.2, 0.3]) + number, 10 + number, 20 + number, seconds=1 + number)


def run(search: Scripted, workers: int = 1, budget: int = 100) -> History:
    return simulate(search, run_of, EPOCHS, workers=workers, budget=budget, rng=np.random.default_rng(0))


def test_a_search_hears_each_epoch_and_the_final_score_at_the_end() -> None:
    search = Scripted({0: "stop"}, most=2)
    history = run(search)
    assert search.seen == [
        (0, 1, 0.1), (0, 1, 0.1, None),
        (1, 1, 1.1), (1, 2, 1.2), (1, 3, 1.3, 11.0),
    ]  # fmt: skip
    assert history.finished == [Finished(1, spent=4, time=1 + 3 * 2, score=11.0, expected=21.0)]
    assert (history.begun, history.spent) == (2, 4)


def test_workers_run_at_once_and_slow_trials_end_later() -> None:
    history = run(Scripted({}, most=2), workers=2)
    assert [(one.trial, one.time) for one in history.finished] == [(0, 3.0), (1, 6.0)]


def test_the_budget_ends_the_search_within_a_trial() -> None:
    history = run(Scripted({}), budget=7)
    assert history.spent == 7
    assert len(history.finished) == 2


def test_chosen_is_the_highest_score_so_far_and_worth_what_other_seeds_say() -> None:
    history = History(
        [Finished(0, 3, 1.0, 0.5, 0.4), Finished(1, 6, 2.0, 0.4, 0.9), Finished(2, 9, 3.0, 0.6, 0.3)]
    )
    assert history.chosen(np.array([2.0, 3.0, 6.0, 9.0])) == pytest.approx(
        [math.nan, 0.4, 0.4, 0.3], nan_ok=True
    )


def test_a_share_of_the_budget_is_looked_at_when_it_is_spent() -> None:
    """After n of the equal parts, n are spent; a search without a whole trial has the worst score."""
    parts = np.arange(1.0, POINTS + 1)
    one = Standing("one", np.stack([parts, parts + 2, np.full(POINTS, np.nan)]), np.ones(3), 1.0, 1.0)
    for share in SHARES:
        lowest = share * POINTS
        mean, half = one.after(share)
        assert mean == pytest.approx((2 * lowest + lowest + 2) / 3)
        assert half == pytest.approx(4.3027 * 2 / 3, abs=1e-3)


def searching(first: int, *, stops: bool = False) -> SearchOf:
    """A search that proposes trials from a number on; every one of them is stopped, or none."""

    def search(workload: Workload, seed: int) -> Scripted:
        one = Scripted(dict.fromkeys(range(first, 99), "stop") if stops else {})
        one.begun = first
        return one

    return search


def test_the_search_with_the_higher_score_ranks_first_and_one_without_any_last() -> None:
    def noisy(values, rng):  # type: ignore[no-untyped-def]
        return replace(run_of(values, rng), expected=20 + values["number"] + rng.random())

    workload: Any = SimpleNamespace(run=noisy, recording=SimpleNamespace(epochs=EPOCHS))
    searches = {
        "none": searching(0, stops=True),
        "low": searching(0),
        "high": searching(50),
        "too": searching(0),
    }
    none, low, high, too = compare(searches, workload, workers=1, budget=30, seeds=2)
    assert [one.ranks.tolist() for one in (none, low, high, too)] == [[4, 4], [2.5, 2.5], [1, 1], [2.5, 2.5]]
    assert low.chosen[:, -1].tolist() == too.chosen[:, -1].tolist(), "the n-th trials have the same noise"
    assert len(set(low.chosen[:, -1])) == 2, "and other noise with another seed"


def test_a_stopped_trial_has_no_final_score_in_our_search() -> None:
    study = SearchStudy(Space.parse({"x": {"uniform": [0.0, 1.0], "default": 0.5}}), sampler="random")
    search = OwnSearch(study, InOrder())
    for last, final in ((0.9, None), (0.8, 0.7)):
        search.end(search.next().trial, 1, last, final)
    assert [one.state for one in study.trials] == [TrialState.PRUNED, TrialState.COMPLETE]
    assert study.trials[1].values == [0.7]
