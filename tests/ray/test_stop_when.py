"""Searches that end because they no longer gain, are resumed, and are extended."""

from pathlib import Path

import pytest
from in_process import without_ray
from studies import tiny_plan

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.ray.sweep import resume_sweep, run_sweep
from contrasweep.tuning.store import ResultsStore
from tests.studies import STUDY, PlannedStudy, scored
from tests.studies import small_plan as written_plan

# No accuracy rises by 2: such a search ends as soon as it may.
NEVER_ENOUGH = "gain<0.99 for 2"


def search_of(results: Path, name: str = "small") -> tuple[int, str | None, int]:
    search = ResultsStore(results).study(name).require_search()
    return search.trials, search.stop_when, search.stop_from


def test_a_search_that_no_longer_gains_ends_and_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with without_ray():
        done = run_sweep(tiny_plan(tmp_path, trials=8, epochs=1, scheduler="none", stop_when=NEVER_ENOUGH))
        assert (done.plan.search.trials, done.counts) == (3, {"completed": 3})
        assert done.ended_early is not None
        assert f"No trial began after 3 of 8, because {done.ended_early}; --extend 5 adds" in caplog.text
        assert search_of(tmp_path) == (3, NEVER_ENOUGH, 0)
        assert resume_sweep("small", tmp_path).counts == {"completed": 3}, "the study has what began"
        more = resume_sweep("small", tmp_path, extend=4)
    assert more.counts == {"completed": 5}, "two trials of the extension count before it ends again"
    assert search_of(tmp_path) == (5, NEVER_ENOUGH, 3)


def test_a_search_of_which_no_trial_keeps_its_condition_goes_on(tmp_path: Path) -> None:
    options = {"stop_when": NEVER_ENOUGH, "keep": ["colour_mse>=1e9"]}
    with without_ray():
        done = run_sweep(tiny_plan(tmp_path, trials=4, epochs=1, scheduler="none", **options))
    assert (done.counts, done.ended_early) == ({"completed": 4}, None)


def test_a_resumed_search_counts_the_trials_of_earlier_drivers(tmp_path: Path) -> None:
    study = PlannedStudy(written_plan(tmp_path, trials=5, stop_when="gain<0.001 for 30"))
    study.write(scored((0.5, 0.6)), scored((0.4, 0.5), "stopped"), scored((0.5, 0.55)))
    with without_ray():
        done = resume_sweep(STUDY, tmp_path, stop_when="gain<0.001 for 2")
    assert done.counts == {"completed": 2, "stopped": 1}
    assert search_of(tmp_path, STUDY) == (3, "gain<0.001 for 2", 0), "the condition given last is recorded"


def test_noise_that_is_unknown_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"stop-when: given 'gain<noise for 5', but the noise of one val.rankme"
    ):
        tiny_plan(tmp_path, metric="rankme", stop_when="gain<noise for 5")
    study = PlannedStudy(written_plan(tmp_path, trials=5, metric="colour_mse"))
    study.write(scored((0.5, 0.6), colour=100.0))
    with pytest.raises(InputError, match=r"the noise of one val\.colour_mse is unknown"):
        resume_sweep(STUDY, tmp_path, stop_when="gain<noise for 5")


def test_a_grid_that_ended_early_takes_the_points_that_are_left(tmp_path: Path) -> None:
    values = {"views.min_crop": 0.4}
    plan = written_plan(tmp_path, sampler="grid", grid_points=2, values=values, budget=1.0)
    points = plan.search.trials
    PlannedStudy(plan).write(scored((0.5, 0.6)))
    with without_ray():
        assert resume_sweep(STUDY, tmp_path).plan.search.trials == 1
    with pytest.raises(InputError, match=f"extend must be at most {points - 1}, given {points}"):
        resume_sweep(STUDY, tmp_path, extend=points)
