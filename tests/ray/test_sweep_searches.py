"""Two studies of one group: each trial runs two seeds and reports two metrics; a database watches."""

from pathlib import Path
from typing import Any

import optuna
import pytest
from in_process import without_ray
from optuna.trial import TrialState
from studies import QUICK, TINY

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.best_config import config_of
from contrasweep.tuning.planning.past_trials import past_trials
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.request import study_of
from contrasweep.tuning.progress.states import SweepProgress
from contrasweep.tuning.ray.final import final_runs
from contrasweep.tuning.ray.sweep_group import resume_group, sweep_group
from contrasweep.tuning.results.selection import StoredSearch, best_trials
from contrasweep.tuning.results.trials import TrialOutcome, trial_outcomes
from contrasweep.tuning.store import ResultsStore, StoreError

METHODS = ("fair-cclk", "infonce")
TRIALS, EPOCHS, SEEDS = 4, 2, 2


def plan(results: Path, method: str, **changes: Any) -> SweepPlan:
    options = {"trials": TRIALS, "epochs": EPOCHS, "seeds": SEEDS, "concurrency": 1, **changes}
    return plan_sweep(
        method,
        TINY,
        metric="accuracy,colour_mse",
        results=results,
        name=study_of("both", method),
        values=QUICK,
        **options,
    )


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with a resumed group: its first driver stopped in the second study."""
    results = tmp_path_factory.mktemp("group")
    storage = f"sqlite:///{results / 'watch.db'}"

    def stop(study: str, progress: SweepProgress) -> None:
        if study == "both-infonce" and progress.done == 1:
            raise KeyboardInterrupt

    with without_ray(), pytest.raises(KeyboardInterrupt) as stopped:
        sweep_group([plan(results, method, storage=storage) for method in METHODS], stop)
    assert [study.state for study in ResultsStore(results).studies()] == ["ended", "interrupted"]
    # What a notebook shows in place of the traceback.
    (line,) = vars(stopped.value)["_render_traceback_"]()
    assert line.endswith(
        f"What was finished is kept; contrasweep.resume_sweep('both-infonce', {str(results)!r}) goes on."
    )
    with without_ray():
        done = resume_group([study_of("both", method) for method in METHODS], results)
    assert [sum(result.counts.values()) for result in done.results] == [TRIALS, TRIALS]
    assert not done.failed
    return results


def test_each_trial_has_a_row_for_each_seed(group: Path) -> None:
    store = ResultsStore(group)
    for method in METHODS:
        rows = store.trials(study_of("both", method)).to_pylist()
        keys = [(row["trial"], row["seed"]) for row in rows]
        assert keys == [(trial, seed) for trial in range(TRIALS) for seed in range(SEEDS)]
        ends = {trial: {row["status"] for row in rows if row["trial"] == trial} for trial in range(TRIALS)}
        assert all(len(end) == 1 and end <= {"completed", "stopped"} for end in ends.values())


def test_the_front_comes_first_and_final_runs_take_fresh_seeds(group: Path) -> None:
    store = ResultsStore(group)
    best = best_trials(store, "both-fair-cclk", None)
    assert {one.trial for one in best} == StoredSearch(store, "both-fair-cclk").candidates.front
    assert all(one.seeds == SEEDS and one.std is not None for one in best)
    runs = final_runs([config_of(best[0])], seeds=1, results=group, concurrency=1)
    assert [row["seed"] for row in runs.rows] == [SEEDS]


def test_the_database_holds_what_the_store_does(group: Path) -> None:
    url, store = f"sqlite:///{group / 'watch.db'}", ResultsStore(group)
    for method in METHODS:
        name = study_of("both", method)
        copied = optuna.load_study(study_name=name, storage=url).trials
        states = {"completed": TrialState.COMPLETE, "stopped": TrialState.PRUNED}
        record = store.study(name)
        tables = store.tables(name)
        past = past_trials(trial_outcomes(tables.trials, record), tables.epochs, record)
        assert [trial.state for trial in copied] == [states[one.state] for one in past]
        for trial, one in zip(copied, past, strict=True):
            if trial.state is TrialState.COMPLETE:
                assert tuple(trial.values) == one.value


def test_an_earlier_study_starts_a_later_one(group: Path) -> None:
    later = plan_sweep(
        "fair-cclk",
        TINY,
        metric="accuracy,colour_mse",
        results=group,
        name="later",
        values={**QUICK, "kernel": "cosine"},
        warm_start=["both-fair-cclk"],
    )
    cosine = [row for row in ResultsStore(group).trials("both-fair-cclk").to_pylist() if row["seed"] == 0]
    fitting = [row for row in cosine if row["hp.kernel"] == "cosine"]
    assert len(later.search.warm_start.trials) == len(fitting) < TRIALS
    assert f"{TRIALS - len(fitting)} do not fit" in later.remarks[0]
    assert "epochs was 2" in later.remarks[1]
    study = later.new_study()
    assert len(study.optuna_study.trials) == len(fitting)
    first = study.ask()
    assert (first.number, first.values) == (0, later.space.defaults())
    # A search of one metric starts from one of several, if that metric is among them.
    alone = plan_sweep(
        "fair-cclk",
        TINY,
        metric="colour_mse",
        results=group,
        values=QUICK,
        warm_start=["both-fair-cclk"],
    )
    scores = {one.trial: one.mean("val.colour_mse") for one in _outcomes(group, "both-fair-cclk")}
    ended = [one for one in alone.search.warm_start.trials if one.state == "completed"]
    assert len(alone.search.warm_start.trials) == TRIALS
    assert [one.value for one in ended] == [(score,) for score in scores.values() if score is not None]
    with pytest.raises(InputError, match="method of study both-infonce is infonce, not fair-cclk"):
        plan(group, "fair-cclk", warm_start=["both-infonce"])


def _outcomes(results: Path, study: str) -> list[TrialOutcome]:
    store = ResultsStore(results)
    return trial_outcomes(store.trials(study), store.study(study))


def test_a_group_whose_name_is_taken_is_refused_whole(group: Path) -> None:
    before = [study.name for study in ResultsStore(group).studies()]
    plans = [plan(group, "weaklysup-infonce"), plan(group, "infonce")]
    with pytest.raises(StoreError, match="named 'both-infonce' exists"):
        sweep_group(plans)
    assert [study.name for study in ResultsStore(group).studies()] == before
