"""A study whose search ended early goes on by the number of trials planned, or by that of those begun."""

import pytest

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.resume_check import Expected, refuse_difference, trials_wanted_again


def test_a_search_that_ended_early_is_believed_to_have_the_trials_planned_or_those_begun() -> None:
    plan = plan_sweep("infonce", "digits", trials=7, name="study-1")
    early = plan.record().with_search(trials=3, not_begun=4)
    for trials, again in ((7, 4), (3, 0), (None, 0)):
        refuse_difference(plan, early, Expected(trials=trials))
        assert trials_wanted_again(early, Expected(trials=trials)) == again
    limited = [trials_wanted_again(early, Expected(trials=trials), limited=True) for trials in (7, 3, None)]
    assert limited == [4, 0, 4], "a script need not say how many trials are usual"
    with pytest.raises(InputError, match=r"trials was 3, is 9 \(--extend 6 adds 6\)\. Start a new one"):
        refuse_difference(plan, early, Expected(trials=9))
    with pytest.raises(InputError, match=r"trials was 3, is 2\. Start a new one"):
        refuse_difference(plan, early, Expected(trials=2))


def test_a_grid_that_ended_early_has_no_more_trials_than_points() -> None:
    plan = plan_sweep("fair-cclk", "colour-digits", sampler="grid", grid_points=2, values={"lam": 1.0})
    early = plan.record().with_search(trials=1, not_begun=plan.search.trials - 1)
    more = Expected(trials=plan.search.trials + 5)
    refuse_difference(plan, early, more)
    assert trials_wanted_again(early, more) == plan.search.trials - 1
