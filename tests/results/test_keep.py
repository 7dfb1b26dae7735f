"""A search that keeps conditions: every place that names a best trial names one that keeps them."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from contrasweep.tuning.cli import app
from contrasweep.tuning.cli.sweep_report import report_methods, report_sweep
from contrasweep.tuning.errors import InputError, SweepFailed
from contrasweep.tuning.experiment.conditions import Condition, parse_condition
from contrasweep.tuning.planning.early_end import EarlyEnd
from contrasweep.tuning.planning.past_trials import past_trials
from contrasweep.tuning.planning.plan import learned_from
from contrasweep.tuning.planning.resume_check import Expected, refuse_difference
from contrasweep.tuning.ray.result import SweepResult
from contrasweep.tuning.ray.sweep_group import GroupResult
from contrasweep.tuning.reports.answer import answer_section
from contrasweep.tuning.reports.comparison import comparison_section
from contrasweep.tuning.reports.figures import draw_progress, front_of
from contrasweep.tuning.reports.style import BREAKS
from contrasweep.tuning.results.candidates import candidates_of
from contrasweep.tuning.results.selection import best_trials
from contrasweep.tuning.results.study import read_study
from contrasweep.tuning.results.trials import trial_outcomes
from contrasweep.tuning.results.violations import violations
from contrasweep.tuning.sensitivity.comparison import _unequal
from contrasweep.tuning.sensitivity.observations import observe
from contrasweep.tuning.store import ResultsStore
from tests.studies import STUDY, PlannedStudy, scored, small_plan

# By accuracy alone the order is 1, 3, 0, 2; trials 1 and 3 keep too much of the colour.
ENDS = [(0.7, 300.0), (0.9, 100.0), (0.6, 400.0), (0.8, 150.0)]
KEEP = "colour_mse>=200"


def written(results: Path, keep: tuple[str, ...] = (KEEP,), **options: Any) -> PlannedStudy:
    study = PlannedStudy(small_plan(results, trials=len(ENDS), keep=keep, **options))
    study.write(*(scored((0.5, 0.55, score), colour=colour) for score, colour in ENDS))
    return study


def condition(text: str) -> Condition:
    return parse_condition(text, ["val.m"])


@pytest.mark.parametrize(
    ("text", "value", "violation"),
    [("m>=2", 3.0, -1.0), ("m>=2", 2.0, 0.0), ("m>=2", 0.5, 1.5), ("m<=2", 0.5, -1.5), ("m<2", 3.0, 1.0)],
)
def test_a_violation_is_the_distance_beyond_the_bound(text: str, value: float, violation: float) -> None:
    assert condition(text).violation(value) == violation
    assert condition(text).holds(value) == (violation <= 0)


@pytest.mark.parametrize("text", ["m>2", "m<2"])
def test_the_bound_itself_breaks_a_strict_condition(text: str) -> None:
    assert 0 < condition(text).violation(2.0) < 1e-300


@pytest.mark.parametrize(
    ("bound", "text"), [("200", "200"), ("0.50", "0.5"), ("0.12345678", "0.12345678"), ("1234567", "1234567")]
)
def test_a_condition_is_told_with_all_its_digits(bound: str, text: str) -> None:
    told = str(condition(f"m>={bound}"))
    assert told == f"val.m >= {text}"
    assert condition(told) == condition(f"m>={bound}")


def test_bounds_that_differ_late_are_two_conditions() -> None:
    both = (condition("m>=0.1234567"), condition("m<=0.12345678"))
    assert len(violations((both[0], condition("m>=0.12345671")), "completed", {"val.m": 0.5}.get, [])) == 2
    assert " and ".join(map(str, both)) == "val.m >= 0.1234567 and val.m <= 0.12345678"


def test_stopped_trials_are_judged_by_their_last_cheap_scores() -> None:
    keep = (parse_condition("val.colour_mse>=200", ["val.colour_mse"]),)
    scores = {"val.colour_mse": 250.0, "val.ridge_colour_mse": 120.0}
    both, one = list(scores), ["val.colour_mse"]
    name = "val.colour_mse >= 200"
    assert violations(keep, "completed", scores.get, both) == {name: -50.0}
    assert violations(keep, "stopped", scores.get, both) == {name: 80.0}
    assert violations(keep, "stopped", scores.get, one) == {name: -50.0}, "a metric without a cheap form"
    assert violations(keep, "completed", {}.get, both) == {name: math.inf}
    assert violations(keep, "stopped", {}.get, both) == {}
    assert violations(keep, "failed", scores.get, both) == {}


def test_every_place_names_the_best_that_keeps_the_condition(tmp_path: Path) -> None:
    study = written(tmp_path)
    found = best_trials(study.store, STUDY, 9)
    assert [one.trial for one in found] == [0, 2]
    assert found[0].rule.endswith("among completed trials, val.colour_mse >= 200")
    assert next(iter(candidates_of(study.store.trials(STUDY), study.record).scores.items())) == (0, 0.7)
    assert candidates_of(study.store.trials(STUDY), study.record).scores == {0: 0.7, 2: 0.6}
    data = read_study(study.store, STUDY)
    assert [one.number for one in data.ranked] == [0, 2]
    assert data.best_so_far == ([0], [0.7])
    assert "The completed trials that keep val.colour_mse &gt;= 200, the best first" in data._repr_html_()
    assert "trial 0 is the best of 2 completed that keep val.colour_mse >= 200" in str(answer_section(data))


def test_figures_mark_the_trials_that_break_it(tmp_path: Path) -> None:
    data = read_study(written(tmp_path).store, STUDY)
    drawn = draw_progress(data, data.trials)
    by_name = {trace.name: list(trace.x) for trace in drawn.data}
    assert by_name["completed: val.accuracy"] == [0, 2]
    assert by_name[f"{BREAKS}: val.accuracy"] == [1, 3]
    free = read_study(written(tmp_path / "free", ()).store, STUDY)
    assert all(not trace.name.startswith(BREAKS) for trace in draw_progress(free, free.trials).data)
    none = read_study(written(tmp_path / "none", ("colour_mse>=500",)).store, STUDY)
    alt = draw_progress(none, none.trials).layout.meta["alt"]
    assert "there is no best one" in alt


def test_an_analysis_of_all_trials_says_that_it_is_one(tmp_path: Path) -> None:
    seen = observe(written(tmp_path).store, STUDY)
    assert seen.keep == "val.colour_mse >= 200"
    other = replace(seen, study="other", keep="")
    (told,) = _unequal(seen, other)
    assert told.endswith("not applied here: study-1 keeps val.colour_mse >= 200, other keeps nothing")


def test_a_comparison_names_the_conditions_that_differ(tmp_path: Path) -> None:
    both = [
        read_study(written(tmp_path / place, keep).store, STUDY)
        for place, keep in (("a", (KEEP,)), ("b", ()))
    ]
    section = comparison_section(both)
    assert "The searches have different conditions (" in section.text
    (table, *_) = section.tables
    goal = table.columns.index("goal")
    assert [row[goal] for row in table.rows] == ["val.accuracy, val.colour_mse >= 200", "val.accuracy"]


def test_the_end_of_a_sweep_does_not_speak_of_trials_that_break_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Trial 1 beats the untrained encoder, and breaks the condition."""
    study = PlannedStudy(small_plan(tmp_path, trials=2, keep=(KEEP,)))
    study.write(*(scored((0.8, 0.8, score), colour=colour) for score, colour in ((0.7, 300.0), (0.9, 100.0))))
    report_sweep(SweepResult(study.plan, {"completed": 2}), as_json=False)
    told = " ".join(capsys.readouterr().err.split())
    assert "did not beat the untrained encoder in the best trial that keeps the conditions" in told


def test_more_conditions_may_be_given_for_a_selection(tmp_path: Path) -> None:
    study = written(tmp_path)
    (best,) = best_trials(study.store, STUDY, where=["colour_mse>=350", KEEP])
    assert best.trial == 2
    assert best.rule.endswith("trials, val.colour_mse >= 200, val.colour_mse >= 350")


def test_the_front_has_trials_that_keep_the_condition(tmp_path: Path) -> None:
    study = written(tmp_path, metric="accuracy,colour_mse")
    assert candidates_of(study.store.trials(STUDY), study.store.study(STUDY)).front == {0, 2}
    front = front_of(read_study(study.store, STUDY))
    assert front is not None
    assert [one.trial for one in front.members] == [0, 2]


def test_where_no_trial_keeps_it_the_nearest_is_named(tmp_path: Path) -> None:
    study = written(tmp_path, ("colour_mse>=500", "accuracy>0.5"))
    told = (
        "none of the 4 completed trials of study study-1 keeps val.colour_mse >= 500 and val.accuracy > 0.5; "
        "the nearest is trial 2 (val.colour_mse 400, val.accuracy 0.6)"
    )
    with pytest.raises(SweepFailed) as failed:
        best_trials(study.store, STUDY)
    assert str(failed.value) == told
    assert not candidates_of(study.store.trials(STUDY), study.record).scores
    data = read_study(study.store, STUDY)
    assert data.candidates.no_best == "N" + told[1:]
    assert "there is no best configuration" in str(answer_section(data))


def test_a_sweep_of_which_no_trial_keeps_it_says_so_at_its_end(tmp_path: Path) -> None:
    plan = written(tmp_path, ("colour_mse>=500",)).plan
    done = SweepResult(plan, {"completed": 4})
    with pytest.raises(SweepFailed, match=r"keeps val\.colour_mse >= 500; the nearest is trial 2"):
        report_sweep(done, as_json=False)
    with pytest.raises(SweepFailed, match=r"keeps val\.colour_mse >= 500; the nearest is trial 2"):
        report_methods(GroupResult((done,)), "prefix", str(tmp_path), as_json=False)


def test_the_commands_show_who_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    written(tmp_path)
    run = CliRunner().invoke
    rows = json.loads(run(app, ["show", STUDY, "--results", str(tmp_path), "--json"]).stdout)
    assert [row["keeps"] for row in rows] == ["yes", "no", "yes", "no"]
    best = run(app, ["best", STUDY, "--results", str(tmp_path), "--top", "3"])
    assert "val.colour_mse >= 200" in best.output
    assert "no other trials have completed and meet the conditions" in " ".join(best.output.split())


def test_the_search_learns_how_far_past_trials_break_it(tmp_path: Path) -> None:
    study = written(tmp_path)
    tables = study.store.tables(STUDY)
    past = past_trials(trial_outcomes(tables.trials, study.record), tables.epochs, study.record)
    name = "val.colour_mse >= 200"
    assert [one.violations[name] for one in past] == [-100.0, 100.0, -200.0, 50.0]
    assert [one.keeps for one in past] == [True, False, True, False]


def test_a_gain_is_one_of_trials_that_keep_it(tmp_path: Path) -> None:
    study = written(tmp_path)
    held = trial_outcomes(study.store.trials(STUDY), study.record)
    for keep, ends in (((), False), (study.plan.search.keep, True)):
        search = study.record.with_search(keep=keep, stop_when="gain<0.1 for 3").require_search()
        assert (EarlyEnd(search, held).reason() is not None) == ends


def test_a_warm_start_takes_the_violations_along(tmp_path: Path) -> None:
    written(tmp_path)
    later = small_plan(tmp_path, keep=("colour_mse>=350", "train.loss<9"), warm_start=[STUDY])
    name = "val.colour_mse >= 350"
    found = later.search.warm_start.trials
    assert [one.violations[name] for one in found] == [50.0, 250.0, -50.0, 200.0]
    assert all(one.violations["train.loss < 9"] == math.inf for one in found), "none has a loss"
    record = type(later.record()).model_validate_json(later.record().model_dump_json())
    taken = learned_from(record.require_search().warm_start)
    assert [dict(one.violations) for one in taken] == [dict(one.violations) for one in found]
    with pytest.raises(InputError, match=r"study-1 lacks the metrics of val\.rankme > 3"):
        small_plan(tmp_path, keep=("rankme>3",), values={"probes.label_free_views": 4}, warm_start=[STUDY])


def test_a_score_without_labels_is_computed_where_it_is_kept(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, keep=("rankme>=5",))
    assert plan.experiment.probes.label_free_views > 0
    assert str(plan.search.keep[0]) == "val.rankme >= 5"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("colour_mse", "--keep takes METRIC>=NUMBER"),
        ("color_mse>=2", "Did you mean"),
        ("test.accuracy>=0", "unk"),
    ],
)
def test_what_cannot_be_kept_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        small_plan(tmp_path, keep=(text,))


def test_a_resume_refuses_other_conditions(tmp_path: Path) -> None:
    study = written(tmp_path, (KEEP, "accuracy>0.5"))
    record = ResultsStore(tmp_path).study(STUDY)
    assert record.require_search().keep == study.plan.search.keep
    refuse_difference(study.plan, record, Expected(keep=["val.accuracy > 0.5", "colour_mse>=2e2"]))
    refuse_difference(study.plan, record, Expected())
    for keep in ([KEEP], ["accuracy>0.5", "colour_mse>=200.0000001"], ["accuracy>=0.5", KEEP]):
        with pytest.raises(InputError, match=r"keep was val\.accuracy > 0\.5, val\.colour_mse >= 200, is"):
            refuse_difference(study.plan, record, Expected(keep=keep))
