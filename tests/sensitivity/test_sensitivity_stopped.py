"""Searches that ASHA stopped, with a known truth: what is recovered, and how often something false is said.

`python -m benchmarks.sensitivity_validation` measures the rates over more studies, for
docs/sensitivity-validation.md.
"""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from contrasweep.tuning.sensitivity import effects as effects_module
from contrasweep.tuning.sensitivity.effects import Effect, effects
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.fidelity import Fidelity, fidelity
from contrasweep.tuning.sensitivity.observations import Observations
from contrasweep.tuning.sensitivity.scores import ScoredTrials, Stage, stages
from tests.sensitivity.learning_curves import EPOCHS, RUNGS, Kind, searched

IDLE = ("c", "d", "kernel")


@pytest.fixture(autouse=True)
def _few_permutations(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests ask for 5 %, which needs no thousand permutations."""
    monkeypatch.setattr(effects_module, "PERMUTATIONS", 199)


def at(one: Observations, epoch: int) -> Stage:
    return next(stage for stage in stages(one) if stage.epoch == epoch)


def effects_at(one: Observations, epoch: int) -> dict[str, Effect] | None:
    trials = at(one, epoch).known
    return None if isinstance(trials, TooFew) else {e.parameter: e for e in effects(one.axes, trials)}


def known(found: ScoredTrials | TooFew) -> ScoredTrials:
    assert not isinstance(found, TooFew)
    return found


def test_the_rule_that_stops_is_that_of_the_scheduler() -> None:
    from ray.tune.schedulers import AsyncHyperBandScheduler, TrialScheduler

    from contrasweep.tuning.planning.halving import Halving
    from contrasweep.tuning.ray.internals import NO_CONTROLLER
    from contrasweep.tuning.ray.scheduler import ResumableASHA

    one, whole = searched("steady", 40, 0), searched("steady", 40, 0, stops=False).curve
    assert Halving().rungs(EPOCHS, 0) == RUNGS
    scheduler = ResumableASHA(EPOCHS, 0, [], {}, Halving())
    last = []
    for number, curve in enumerate(whole):
        trial: Any = SimpleNamespace(trial_id=str(number), config={"request": SimpleNamespace(trial=number)})
        AsyncHyperBandScheduler.on_trial_add(scheduler, NO_CONTROLLER, trial)
        reports = ({"epoch": epoch, "score": float(curve[epoch])} for epoch in range(1, EPOCHS + 1))
        decisions = ((r["epoch"], scheduler.on_trial_result(NO_CONTROLLER, trial, r)) for r in reports)
        last.append(next(epoch for epoch, decided in decisions if decided == TrialScheduler.STOP))
    assert last == np.isfinite(one.curve[:, 1:]).sum(axis=1).tolist()
    assert len(set(last)) == len(RUNGS) + 1


def test_stages_hold_measured_scores_and_estimate_the_others() -> None:
    one = searched("steady", 60, 0)
    found = stages(one)
    assert [stage.epoch for stage in found] == [*RUNGS, EPOCHS]
    assert [stage.reached for stage in found] == [
        int(np.isfinite(one.curve[:, e]).sum()) for e in (*RUNGS, EPOCHS)
    ]
    first, second = known(found[0].trials), known(found[1].trials)
    assert not first.estimated.any()
    assert first.known == 1.0
    assert len(second) == 60
    measured = second.row[~second.estimated]
    np.testing.assert_array_equal(second.score[~second.estimated], one.curve[measured, 3])
    assert (second.draws[:, ~second.estimated] == second.draws[0, ~second.estimated]).all()
    assert second.draws[:, second.estimated].std(axis=0).min() > 0


def test_draws_cover_the_scores_that_stopped_trials_would_have_had() -> None:
    inside = []
    for seed in range(12):
        one, whole = searched("steady", 60, seed), searched("steady", 60, seed, stops=False).curve
        trials = known(at(one, 3).trials)
        low, high = np.quantile(trials.draws[:, trials.estimated], [0.05, 0.95], axis=0)
        truth = whole[trials.row[trials.estimated], 3]
        inside.append(np.mean((low <= truth) & (truth <= high)))
    assert 0.8 < np.mean(inside) < 0.98


def test_estimates_of_a_share_are_shares() -> None:
    """Lines through scores near 1 lead beyond it; a score of another scale has no such end."""
    one = searched("steady", 60, 0)
    low, high = np.nanmin(one.curve), np.nanmax(one.curve)
    near = replace(
        one,
        score=0.9 + 0.1 * (one.score - low) / (high - low),
        curve=0.9 + 0.1 * (one.curve - low) / (high - low),
    )
    shares = known(stages(near)[-1].trials)
    assert shares.estimated.any()
    assert shares.draws.max() == 1.0, "some were cut"
    assert shares.draws.min() >= 0.0
    wide = replace(near, score=near.score + 1, curve=near.curve + 1)
    assert known(stages(wide)[-1].trials).draws.max() > 2.0


def test_estimates_of_an_error_are_not_below_0() -> None:
    """Where smaller values are better, the score is negated, so 0 is the most that it can be."""
    one = searched("steady", 60, 0)
    best = np.nanmax(one.curve)
    errors = replace(one, score=one.score - best, curve=one.curve - best, metric="-val.alignment")
    found = known(stages(errors)[-1].trials)
    assert found.draws[:, found.estimated].max() == 0.0, "some were cut"
    own = known(stages(replace(errors, metric="-val.of_a_plug_in"))[-1].trials)
    assert own.draws[:, own.estimated].max() > 0.0


def test_estimates_do_not_depend_on_how_trials_are_numbered() -> None:
    one = searched("steady", 40, 3)
    order = np.random.default_rng(0).permutation(40)
    moved = {name: getattr(one, name)[order] for name in ("codes", "score", "curve", "ending", "rung")}
    first, second = known(at(one, 3).trials), known(at(replace(one, **moved), 3).trials)
    np.testing.assert_allclose(first.draws, second.draws)


def test_failed_trials_are_lost_and_running_ones_go_on() -> None:
    one = searched("steady", 60, 0)
    ending = one.ending.copy()
    failed, running = np.flatnonzero(one.ending == "stopped")[:2]
    ending[failed], ending[running] = "failed", "running"
    found = known(at(replace(one, ending=ending), 3).trials)
    assert failed not in found.row
    assert running in found.row
    assert found.left_out == 1


@pytest.mark.parametrize("trials", [24, 60])
def test_the_main_parameter_is_found_at_the_first_rung_and_idle_ones_are_not(trials: int) -> None:
    studies = [effects_at(searched("steady", trials, seed), 1) for seed in range(40)]
    found = [one for one in studies if one is not None]
    assert len(found) == 40
    first = [max(one, key=lambda name: one[name].share) for one in found]
    assert first.count("a") >= 36
    assert sum(one["a"].verdict == "matters" for one in found) >= 36
    assert np.mean([one[name].p <= 0.05 for one in found for name in IDLE]) <= 0.1
    assert sum(any(one[name].verdict == "matters" for name in IDLE) for one in found) <= 4


def test_noise_shows_nothing_in_more_than_one_of_twenty_studies() -> None:
    said = 0
    for seed in range(40):
        one = searched("noise", 60, seed)
        for epoch in (1, 3):
            found = effects_at(one, epoch)
            said += found is not None and any(e.verdict == "matters" for e in found.values())
    assert said <= 6  # of 80


def test_a_search_that_learned_does_not_make_idle_parameters_matter() -> None:
    false = 0
    for seed in range(6):
        found = effects_at(searched("steady", 30, seed, "tpe"), 1)
        assert found is not None
        assert found["a"].verdict == "matters"
        false += any(found[name].verdict == "matters" for name in IDLE)
    assert false <= 1


@pytest.mark.parametrize(("kind", "late"), [("crossing", "b"), ("fading", "a")])
def test_what_matters_early_is_not_carried_on_by_the_choice_of_trials(kind: Kind, late: str) -> None:
    early = {"crossing": "a", "fading": "b"}[kind]
    matters = {early: 0, late: 0, "idle": 0}
    told = 0
    for seed in range(12):
        one = searched(kind, 150, seed)
        first, last = effects_at(one, 1), effects_at(one, 9)
        assert first is not None
        assert first[early].verdict == "matters"
        if last is not None:
            told += 1
            for name in (early, late):
                matters[name] += last[name].verdict == "matters"
            matters["idle"] += any(last[name].verdict == "matters" for name in IDLE)
    assert told >= 6
    # The early one explains nothing after the seventh epoch.
    assert matters[early] <= 1
    assert matters["idle"] <= 1
    assert matters[late] >= 0.6 * told


def test_too_few_that_reached_a_rung_say_so() -> None:
    found = stages(searched("steady", 24, 1))
    reached = [stage.reached for stage in found]
    assert reached[0] == 24
    for stage in found:
        if stage.reached < 6:
            assert isinstance(stage.trials, TooFew)
        elif stage.reached < 10:
            assert stage.known == TooFew(stage.reached, 10, f"trials that reached {stage.name}")


def test_scores_that_are_mostly_guessed_are_not_analysed() -> None:
    open_still = [at(searched("noise", 60, seed), 9) for seed in range(8)]
    unknown = [stage.known for stage in open_still if stage.reached >= 10]
    lacks = [lack for lack in unknown if isinstance(lack, TooFew)]
    assert len(lacks) >= len(unknown) / 2 > 0
    assert all("% of the variance" in lack.counted and lack.found < 50 for lack in lacks)


def test_intervals_of_the_correlation_with_later_rungs_cover_the_truth() -> None:
    whole = searched("fading", 4000, 99, stops=False).curve
    ranks = whole.argsort(axis=0).argsort(axis=0)
    truth = {later: float(np.corrcoef(ranks[:, 1], ranks[:, later])[0, 1]) for later in (3, 9)}
    covered, measured = [], []
    for seed in range(25):
        one = searched("fading", 60, seed)
        found = fidelity(one, stages(one))
        assert isinstance(found, Fidelity)
        for link in found.links:
            if link.epoch == 1 and link.later in truth:
                covered.append(link.estimated_low <= truth[link.later] <= link.estimated_high)
                measured.append(link.spearman - truth[link.later])
    assert len(covered) >= 40
    assert np.mean(covered) >= 0.88
    # Among the trials that reached both, the correlation is smaller than it is.
    assert np.mean(measured) < -0.1
