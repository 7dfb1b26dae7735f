"""What a killed driver left open is recorded by the next one, without Ray."""

import math
from pathlib import Path
from typing import Any

import pytest
from in_process import without_ray
from studies import outcome, small_plan, tiny_plan

from contrasweep.tuning.planning.past_trials import past_trials
from contrasweep.tuning.ray.earlier_drivers import earlier_trials
from contrasweep.tuning.ray.scheduler import ResumableASHA
from contrasweep.tuning.ray.searcher import StoreSearcher
from contrasweep.tuning.ray.sweep import resume_sweep, run_sweep
from contrasweep.tuning.results.trials import trial_outcomes
from contrasweep.tuning.store import ResultsStore, open_location, save_study
from contrasweep.tuning.trials.checkpoints import Checkpoints
from contrasweep.tuning.trials.trial import DataCache, Trial, end_from_outside
from tests.studies import PlannedStudy, scored
from tests.studies import small_plan as written_plan


def test_seeds_left_open_by_a_killed_driver_end_as_their_trial_did(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, seeds=2)
    location, record = open_location(tmp_path, writable=True), plan.record()
    save_study(location, record)
    searcher = StoreSearcher(plan, record, location, [])
    request = searcher.suggest("a")["request"]
    first, second = request.replicates()
    ahead = Trial(first, DataCache())
    Trial(second, DataCache()).advance()
    assert [ahead.advance().epoch, ahead.advance().epoch] == [0, 1]
    end_from_outside(first, "stopped", rung=1)
    store = ResultsStore(tmp_path)
    tables = store.tables("small")
    (held,) = trial_outcomes(tables.trials, record)
    assert (held.status, held.open_seeds) == ("stopped", (second.experiment.seed,))
    (past,) = past_trials([held], tables.epochs, record)
    assert not past.unfinished
    assert past.epochs == {}, "epoch 1 of one seed alone is no mean"
    earlier_trials(plan, record, location)
    ended = {(row["status"], row["rung"]) for row in store.trials("small").to_pylist()}
    assert ended == {("stopped", 1)}, "as if the driver had lived"


def statuses(study: PlannedStudy) -> list[tuple[int, int, str, int | None, int | None]]:
    rows = study.store.trials(study.plan.name).to_pylist()
    return [(row["trial"], row["seed"], row["status"], row["epoch"], row["rung"]) for row in rows]


def test_a_trial_that_a_dead_driver_would_have_stopped_is_stopped(tmp_path: Path) -> None:
    study = PlannedStudy(written_plan(tmp_path, scheduler="asha"))
    good = [scored((0.5, one, one), trial=place) for place, one in enumerate((0.7, 0.8, 0.9))]
    at_rung = [
        scored((0.5, one), "running", trial=3 + place) for place, one in enumerate((0.6, math.nan, 0.95))
    ]
    study.write(*good, *at_rung)
    found = earlier_trials(study.plan, study.record, study.location)
    assert statuses(study)[3:] == [
        (3, 0, "stopped", 1, 1),
        (4, 0, "stopped", 1, 1),
        (5, 0, "interrupted", None, None),
    ]
    assert [one.status for one in found.outcomes[3:]] == [one.state for one in found.past[3:]]
    assert [one.state for one in found.past[3:]] == ["stopped", "stopped", "interrupted"]
    assert [one.epochs for one in found.past[3:]] == [{1: 0.6}, {1: -math.inf}, {1: 0.95}]


def test_a_trial_with_a_seed_beyond_the_rung_was_let_go_on(tmp_path: Path) -> None:
    study = PlannedStudy(written_plan(tmp_path, scheduler="asha", seeds=2))
    for place, one in enumerate((0.7, 0.8, 0.9)):
        study.write(*(scored((0.5, one, one), trial=place, seed=seed) for seed in (0, 1)))
    study.write(*(scored((0.5, 0.6), "running", trial=3, seed=seed) for seed in (0, 1)))
    study.write(scored((0.5, 0.6, 0.6), "running", trial=4, seed=0))
    study.write(scored((0.5, 0.6), "running", trial=4, seed=1))
    earlier_trials(study.plan, study.record, study.location)
    assert [one[2] for one in statuses(study)[6:]] == ["stopped"] * 2 + ["interrupted"] * 2


def test_a_driver_that_dies_before_each_stop_leaves_the_same_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with without_ray():
        run_sweep(tiny_plan(tmp_path / "whole", scheduler="asha", trials=6))
    # Each epoch leaves a checkpoint, so a trial that goes on never reports its last epoch again.
    monkeypatch.setattr(Checkpoints, "due", lambda self, epoch: True)
    decide, deaths = ResumableASHA.on_trial_result, []

    def dies_before_a_stop(scheduler: ResumableASHA, controller: Any, trial: Any, result: Any) -> str:
        decision = decide(scheduler, controller, trial, result)
        if decision == ResumableASHA.STOP:
            deaths.append(trial.config["request"].trial)
            raise KeyboardInterrupt
        return decision

    monkeypatch.setattr(ResumableASHA, "on_trial_result", dies_before_a_stop)
    plan = tiny_plan(tmp_path / "killed", scheduler="asha", trials=6)
    with without_ray():
        with pytest.raises(KeyboardInterrupt):
            run_sweep(plan)
        while len(deaths) < 20:
            try:
                resume_sweep(plan.name, plan.results)
                break
            except KeyboardInterrupt:
                continue
    stopped = [row["trial"] for row in outcome(tmp_path / "whole") if row["status"] == "stopped"]
    assert deaths == stopped != []
    assert outcome(tmp_path / "killed") == outcome(tmp_path / "whole")
