"""A sweep that starts from studies on other datasets: their best configurations run first."""

from pathlib import Path
from typing import Any

import pytest

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from tests.studies import PlannedStudy, Run, scored, small_plan

BEST = {"kernel": "rbf", "sigma2": 50.0, "temperature": 0.11}
SECOND = {"kernel": "laplacian", "sigma2": 20.0, "temperature": 0.22}


def write(results: Path, name: str, *runs: Run, dataset: str = "biased-digits", **options: Any) -> SweepPlan:
    options = {"metric": "accuracy", "epochs": 2, **options}
    study = PlannedStudy(plan_sweep("fair-cclk", dataset, results=results, name=name, **options))
    study.write(*runs)
    return study.plan


def run(score: float, status: str = "completed", **values: Any) -> Run:
    return scored((0.5, 0.55, score), status, values=values)


def short(plan: SweepPlan) -> list[float]:
    """Return the temperatures of what runs first: the runs here differ in them."""
    return [float(one["temperature"]) for one in plan.search.enqueued]


def test_the_best_of_another_dataset_run_first(tmp_path: Path) -> None:
    write(
        tmp_path,
        "there",
        run(0.99),
        run(0.7, temperature=0.33),
        run(0.8, **SECOND),
        run(0.9, **BEST),
        run(0.95, "stopped", temperature=0.44),
        run(0.6, temperature=0.55),
        run(0.5, temperature=0.66),
    )
    later = small_plan(tmp_path, warm_start=["there"])
    assert short(later) == [0.11, 0.22, 0.33, 0.55], "neither the defaults nor a stopped trial"
    assert {name: later.search.enqueued[0][name] for name in BEST} == BEST
    assert later.search.warm_start.trials == ()
    assert later.remarks == ("there searched on biased-digits: 4 of its best configurations run first",)
    study = later.new_study()
    assert [study.ask().values["temperature"] for _ in range(3)] == [
        later.space.defaults()["temperature"],
        0.11,
        0.22,
    ]
    record = later.record().require_search()
    assert record.warm_start.studies == ("there",)
    assert record.enqueued == later.search.enqueued, "a resumed study needs the earlier one no longer"


def test_half_of_the_trials_are_left_to_the_search(tmp_path: Path) -> None:
    write(tmp_path, "there", run(0.9, **BEST), run(0.8, **SECOND), run(0.7, temperature=0.33))
    assert short(small_plan(tmp_path, trials=6, warm_start=["there"])) == [0.11, 0.22]
    mine = [{"temperature": 0.77}, SECOND]
    assert short(small_plan(tmp_path, trials=8, warm_start=["there"], enqueue=mine)) == [0.77, 0.22, 0.11]
    assert short(small_plan(tmp_path, trials=3, warm_start=["there"], enqueue=mine)) == [0.77, 0.22]


def test_several_studies_take_turns_beside_one_of_this_dataset(tmp_path: Path) -> None:
    write(tmp_path, "first", run(0.9, **BEST), run(0.8, temperature=0.33))
    write(tmp_path, "second", run(0.2, **BEST), run(0.1, **SECOND))
    write(tmp_path, "here", run(0.6, temperature=0.5), dataset="colour-digits")
    later = small_plan(tmp_path, warm_start=["first", "second", "here"])
    assert short(later) == [0.11, 0.33, 0.22]
    assert [one.values["temperature"] for one in later.search.warm_start.trials] == [0.5]
    assert [remark.partition(":")[2][:3] for remark in later.remarks[-2:]] == [" 2 ", " 2 "]


def test_what_does_not_fit_the_space_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, "there", run(0.9, **BEST), run(0.8, **SECOND))
    later = small_plan(tmp_path, values={"kernel": "laplacian"}, warm_start=["there"])
    assert short(later) == [0.22]
    assert later.remarks[0].endswith(": 1 of its best configurations run first")


def test_the_scores_of_another_dataset_need_not_be_of_this_metric(tmp_path: Path) -> None:
    write(tmp_path, "there", run(0.9, **BEST), keep=("accuracy>=0.5",))
    assert short(small_plan(tmp_path, metric="colour_mse", warm_start=["there"])) == [0.11]


def test_a_study_without_the_scheduler_s_metric_lends_its_completed_trials(tmp_path: Path) -> None:
    write(tmp_path, "here", run(0.6, temperature=0.5), run(0.4, "stopped"), dataset="colour-digits")
    later = small_plan(tmp_path, metric="accuracy", asha_metric="rankme", warm_start=["here"])
    assert [(one.values["temperature"], one.state) for one in later.search.warm_start.trials] == [
        (0.5, "completed")
    ]
    assert "here lacks val.rankme: its stopped trials are left out" in later.remarks
    later.new_study().ask()


def test_of_a_trial_the_last_merit_and_the_final_one_are_taken(tmp_path: Path) -> None:
    """Alignment is minimised, and merits are maximised."""
    curve = {epoch: {"val.alignment": 4.0 - epoch} for epoch in range(3)}
    ended = Run(values={"temperature": 0.5}, curve=curve, final={"val.alignment": 1.9})
    stopped = Run(values={"temperature": 0.4}, curve={0: curve[0], 1: curve[1]}, status="stopped")
    write(tmp_path, "here", ended, stopped, dataset="colour-digits", metric="alignment")
    taken = small_plan(tmp_path, metric="alignment", warm_start=["here"]).search.warm_start.trials
    assert [(one.state, one.epochs) for one in taken] == [("completed", {2: -2.0}), ("stopped", {1: -3.0})]
    assert taken[0].value == (-1.9,)


def test_what_says_nothing_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "none", run(0.9, "stopped"))
    with pytest.raises(InputError, match="warm start: no trial of study none has completed yet"):
        small_plan(tmp_path, warm_start=["none"])
    write(tmp_path, "there", run(0.9, **BEST))
    with pytest.raises(InputError, match="would run first, and a grid runs its own points only"):
        small_plan(tmp_path, sampler="grid", grid_points=2, warm_start=["there"])
    with pytest.raises(InputError, match="method of study there is fair-cclk, not infonce"):
        plan_sweep("infonce", "colour-digits", results=tmp_path, warm_start=["there"])
