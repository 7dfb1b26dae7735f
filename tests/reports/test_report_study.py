import math
import random
from datetime import timedelta
from pathlib import Path

import pytest

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.reports.rows import write_rows
from contrasweep.tuning.results.selection import best_trials
from contrasweep.tuning.results.study import read_study
from contrasweep.tuning.store import Location, ResultsStore, StoreError
from tests.studies import CREATED, PlannedStudy, Run, WrittenStudy, make_final_record, scored


def test_the_best_completed_trial_comes_first_and_of_equal_ones_the_earlier(write_study, store) -> None:
    write_study(
        [
            scored([0.5, 0.7]),
            scored([0.5, 0.9], status="stopped"),
            scored([0.5, 0.8]),
            scored([0.5, 0.8]),
            scored([0.5, math.nan]),
            scored([0.5], status="failed", error="loss nan"),
        ]
    )
    data = read_study(store, "demo")
    assert [trial.number for trial in data.ranked] == [2, 3, 0]
    assert data.counts == {"completed": 4, "stopped": 1, "failed": 1}
    assert data.trials[4].score is None
    assert data.trials[5].last is None
    assert data.ranked[0].untrained == 0.5


def test_seeds_of_a_trial_are_averaged(write_study, store) -> None:
    write_study(
        [
            scored([0.4, 0.6], trial=0, seed=0),
            scored([0.6, 0.9], trial=0, seed=1),
            scored([0.5, 0.7], trial=1, seed=0),
            scored([0.7, 0.9], trial=1, seed=1),
            scored([0.5, 0.7], trial=2, seed=0),
        ],
        search={"trials": 3, "seeds": 2},
    )
    data = read_study(store, "demo")
    assert [trial.score for trial in data.trials] == [pytest.approx(0.75), pytest.approx(0.8), None]
    assert data.trials[2].status == "interrupted", "one of its two seeds has no row"
    assert data.trials[0].seeds == (0, 1)
    assert data.curves[0].scores.tolist() == [0.5, 0.75]
    assert data.trials[0].untrained == 0.5


def test_a_trial_of_which_a_seed_failed_has_failed(write_study, store) -> None:
    write_study([scored(trial=0), scored([0.5], "failed", trial=0, seed=1, error="out of memory")])
    (trial,) = read_study(store, "demo").trials
    assert (trial.status, trial.score, trial.error) == ("failed", None, "out of memory")


def test_the_untrained_encoder_is_the_mean_of_epoch_0(write_study, store) -> None:
    write_study([scored([0.4, 0.9]), scored([0.6, 0.8]), scored([math.nan, 0.7])])
    data = read_study(store, "demo")
    assert data.untrained == 0.5
    assert data.untrained_score("val.accuracy") == 0.5
    assert data.untrained_score("val.colour_mse") is None


def test_values_that_a_trial_does_not_have_are_absent(write_study, store) -> None:
    write_study([scored(values={"kernel": "rbf", "sigma2": 3.0, "optimizer.lr": 0.1}), scored()])
    data = read_study(store, "demo")
    assert data.trials[0].values["sigma2"] == 3.0
    assert "sigma2" not in data.trials[1].values


def test_the_order_of_writing_changes_nothing(write_study, store) -> None:
    trials = [scored([0.5, 0.5 + n / 20], trial=n) for n in range(8)]
    write_study(trials, "sorted")
    write_study(random.Random(1).sample(trials, len(trials)), "shuffled")
    first, second = (read_study(store, name) for name in ("sorted", "shuffled"))
    assert [t.number for t in first.ranked] == [t.number for t in second.ranked]
    assert first.best_so_far == second.best_so_far


def test_the_best_so_far_is_of_final_scores_of_completed_trials(write_study, store) -> None:
    write_study(
        [
            scored([0.9, 0.95], "stopped"),
            scored([0.9, 0.8, 0.5]),
            scored([0.9, 0.4]),
            scored([0.9, 0.7]),
        ]
    )
    data = read_study(store, "demo")
    assert data.best_so_far == ([1, 3], [0.5, 0.7])
    assert data.ranked[0].number == 3


def test_final_runs_are_read_along_and_not_for_themselves(write_study, write_final, store) -> None:
    write_study([scored()])
    assert read_study(store, "demo").final_rows == []
    write_final([(0.9, 0.8)])
    assert [row["seed"] for row in read_study(store, "demo").final_rows] == [1]
    with pytest.raises(InputError, match=f"`contrasweep report demo --results {store.location.uri}` shows"):
        read_study(store, "demo-final")


def test_final_runs_of_other_epochs_follow_those_of_the_search(write_study, location, store) -> None:
    write_study([scored()])
    write_study([scored()], name="demo-6-epochs")
    for epochs in (4, 30):
        _write_longer(location, epochs)
    data = read_study(store, "demo")
    assert (data.final_record.name, [runs.study for _, runs in data.other_finals]) == (
        "demo-30-epochs-final",
        ["demo-4-epochs-final"],
    )
    WrittenStudy(location, make_final_record()).write(Run(final={"test.accuracy": 0.5}))
    data = read_study(store, "demo")
    assert data.final_record.name == "demo-final"
    assert [runs.study for _, runs in data.other_finals] == ["demo-30-epochs-final", "demo-4-epochs-final"]
    names = {path.name for path in write_rows(store, "demo", Path(location.uri) / "rows")}
    assert "demo-4-epochs-final-trials.csv" in names
    assert read_study(store, "demo-6-epochs").final_record is None
    with pytest.raises(InputError, match=r"`contrasweep report demo --results .*` shows them"):
        read_study(store, "demo-4-epochs-final")


def _write_longer(location: Location, epochs: int) -> None:
    record = make_final_record(
        f"demo-{epochs}-epochs-final", search={"searched": "demo"}, experiment={"epochs": epochs}
    )
    WrittenStudy(location, record).write(Run(final={"test.accuracy": 0.5}))


def test_an_unknown_study(write_study, store: ResultsStore) -> None:
    write_study([scored()])
    with pytest.raises(StoreError, match="Did you mean 'demo'"):
        read_study(store, "deme")


def test_a_search_with_the_name_of_final_runs_is_not_taken_for_them(write_study, store) -> None:
    write_study([scored()])
    write_study([scored()], name="demo-final")
    data = read_study(store, "demo")
    assert (data.final_record, data.final_rows) == (None, [])


def test_a_study_before_its_first_trial(write_study, store) -> None:
    write_study([])
    data = read_study(store, "demo")
    assert (data.trials, dict(data.curves), data.ranked, data.untrained) == ([], {}, [], None)


def test_the_report_selects_as_the_selection_does(tmp_path) -> None:
    plan = plan_sweep("infonce", "colour-digits", trials=4, epochs=1, results=tmp_path, name="demo")
    study, untrained = PlannedStudy(plan), {"val.accuracy": 0.6, "val.ridge_accuracy": 0.6}
    study.write(
        *(Run(curve={0: untrained}, final={"val.accuracy": score}) for score in (0.5, 0.8, math.nan, 0.8))
    )
    selected = best_trials(study.store, "demo", top=4)
    ranked = read_study(study.store, "demo").ranked
    assert [(t.trial, t.score, t.untrained) for t in selected] == [
        (t.number, t.score, t.untrained) for t in ranked
    ]


def test_a_stopped_trial_is_not_selected_though_it_has_the_metric(write_study, store) -> None:
    # As on transductive data, where the metric has no cheaper form.
    search = {"metric": "val.ridge_accuracy"}
    write_study([scored([0.5, 0.7]), scored([0.5, 0.9], "stopped")], search=search)
    assert [trial.number for trial in read_study(store, "demo").ranked] == [0]


@pytest.mark.parametrize("seconds", [0, -1])
def test_final_runs_of_an_earlier_search_of_the_name_are_left_out(
    write_study, location, store, caplog, seconds: int
) -> None:
    write_study([scored([0.5, 0.7])])
    record = make_final_record(created=CREATED + timedelta(seconds=seconds))
    WrittenStudy(location, record).write(Run(final={"test.accuracy": 0.5}))
    assert (read_study(store, "demo").final_runs is None) == (seconds < 0)
    assert ("demo-final is left out: its runs are of an earlier search" in caplog.text) == (seconds < 0)
    names = {path.name for path in write_rows(store, "demo", Path(location.uri) / "rows")}
    assert ("demo-final-trials.csv" in names) == (seconds == 0)


def test_final_runs_whose_search_is_gone_are_shown_by_another_command(tmp_path) -> None:
    WrittenStudy(tmp_path, make_final_record("gone-final")).write(Run(final={"test.accuracy": 0.5}))
    with pytest.raises(
        InputError, match=r"contrasweep show gone-final --results .*` shows them, .* gone is gone"
    ):
        read_study(ResultsStore(tmp_path), "gone-final")
