"""Sweeps with a condition: the line of progress, the encoders and the sampler follow it, also resumed."""

from pathlib import Path
from typing import Any

import pytest
from in_process import without_ray
from studies import tiny_plan

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.resume_check import Expected
from contrasweep.tuning.progress.states import Progress, SweepProgress
from contrasweep.tuning.ray import searcher
from contrasweep.tuning.ray.sweep import resume_sweep, run_sweep
from contrasweep.tuning.results.selection import best_trials
from contrasweep.tuning.store import ResultsStore

TRIALS = 6


def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the searches that are made from now on."""
    made: list[Any] = []
    plan = searcher.SweepPlan.new_study
    monkeypatch.setattr(searcher.SweepPlan, "new_study", lambda *given: made.append(plan(*given)) or made[-1])
    return made


def test_a_sweep_follows_its_condition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with without_ray():
        run_sweep(tiny_plan(tmp_path / "free", trials=TRIALS, scheduler="none", epochs=1))
        free = ResultsStore(tmp_path / "free")
        colours = sorted(one.metrics["val.colour_mse"] for one in best_trials(free, "small", TRIALS))
        # The best trial of the free search breaks it, and so do others.
        best = best_trials(free, "small")[0].metrics["val.colour_mse"]
        bound = (max(best, colours[2]) + min(one for one in colours if one > max(best, colours[2]))) / 2
        shown: list[Progress] = []
        made = told(monkeypatch)
        plan = tiny_plan(tmp_path, trials=TRIALS, scheduler="none", epochs=1, keep=[f"colour_mse>={bound}"])
        run_sweep(plan, shown.append)
        resumed: list[Progress] = []
        resume_sweep("small", tmp_path, extend=1, progress=resumed.append)
    store = ResultsStore(tmp_path)
    (first,) = best_trials(store, "small")
    assert first.metrics["val.colour_mse"] >= bound
    for states in (shown, resumed):
        last = states[-1]
        assert isinstance(last, SweepProgress)
    assert isinstance(last, SweepProgress)
    assert last.best == (first.trial, first.score)
    kept = {path.name for path in (tmp_path / "exports" / "small").glob("*")}
    assert kept == {f"{first.trial:05d}-0"}
    rows = store.trials("small").to_pylist()
    after, again = ([one.constraints for one in study.trials] for study in made)
    assert again[:TRIALS] == after, "a resumed search knows what the first one did"
    beyond = [one[str(plan.search.keep[0])] for one in again]
    assert beyond == pytest.approx([bound - row["metric.val.colour_mse"] for row in rows])
    assert max(beyond) > 0 >= min(beyond)


def test_stopped_trials_break_it_by_their_last_scores_also_in_a_resumed_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = told(monkeypatch)
    with without_ray():
        run_sweep(tiny_plan(tmp_path, trials=TRIALS, epochs=2, keep=["colour_mse>=50"]))
        resume_sweep("small", tmp_path)
    rows = {row["trial"]: row for row in ResultsStore(tmp_path).trials("small").to_pylist()}
    stopped = [trial for trial, row in rows.items() if row["status"] == "stopped"]
    assert stopped
    for study in made:
        for trial in stopped:
            (violation,) = study.trials[trial].constraints.values()
            assert violation == pytest.approx(50 - rows[trial]["metric.val.ridge_colour_mse"])


def test_a_resume_with_another_condition_is_refused(tmp_path: Path) -> None:
    with without_ray():
        run_sweep(tiny_plan(tmp_path, trials=1, epochs=1, keep=["colour_mse>=0"]))
        with pytest.raises(InputError, match=r"keep was val\.colour_mse >= 0, is val\.accuracy > 0"):
            resume_sweep("small", tmp_path, expected=Expected(keep=["accuracy>0"]))
