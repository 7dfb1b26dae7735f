"""What notebooks show of studies, trials, final runs, evaluations and analyses."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import torch

from contrasweep.notebook_tables import MOST_ROWS, html_table
from contrasweep.tuning.ray.result import SweepResult
from contrasweep.tuning.results.final_runs import FinalRuns
from contrasweep.tuning.results.selection import SelectedTrials, best_trials
from contrasweep.tuning.results.study import read_study
from contrasweep.tuning.sensitivity.analyse import analyse_observations
from contrasweep.tuning.transfer.evaluate import Transfer
from contrasweep.tuning.transfer.measure import Measurement
from tests.sensitivity.analysed_studies import study
from tests.studies import (
    STUDY,
    PlannedStudy,
    Run,
    WrittenStudy,
    make_final_record,
    make_record,
    scored,
    small_plan,
)


class Tables(HTMLParser):
    """Reads the cells of the tables and the paragraphs of a piece of HTML."""

    def __init__(self, text: str | None) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.said: list[str] = []
        self._open: list[str] = []
        assert text is not None
        self.feed(text)
        assert self._open == []

    @property
    def rows(self) -> list[list[str]]:
        """The rows of the first table."""
        return self.tables[0] if self.tables else []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        elif tag == "p":
            self.said.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data
        else:
            self.said[-1] += data


def records(shown: Any) -> list[dict[str, str]]:
    """Return the rows of the first table that an object shows in a notebook, by column."""
    names, *rows = Tables(shown._repr_html_()).rows
    return [dict(zip(names, row, strict=True)) for row in rows]


def said(shown: Any) -> list[str]:
    return Tables(shown._repr_html_()).said


def test_what_a_table_holds_is_escaped() -> None:
    hostile = '<script>alert(1)</script> & "quoted"'
    shown = html_table(hostile, [{hostile: hostile}], hostile, f"`{hostile}`")
    assert "<script" not in shown
    found = Tables(shown)
    assert found.rows == [[hostile], [hostile]]
    assert found.said == [hostile] * 3
    assert "<code>" in shown


def test_a_long_table_shows_the_first_rows_and_how_many_more_there_are() -> None:
    shown = Tables(html_table("many", [{"trial": str(number)} for number in range(1000)]))
    assert shown.rows == [["trial"], *([str(number)] for number in range(MOST_ROWS))]
    assert shown.said == ["many", "... and 990 more."]
    assert Tables(html_table("few", [{"trial": "1"}], "", rest=0)).said == ["few"]
    assert Tables(html_table("none", [])).rows == []


def test_columns_are_those_of_all_rows_and_numbers_stand_on_the_right() -> None:
    shown = html_table("t", [{"a": "rbf", "b": "0.5 ± 0.1"}, {"a": "cosine", "c": "1,234"}])
    assert Tables(shown).rows == [["a", "b", "c"], ["rbf", "0.5 ± 0.1", "-"], ["cosine", "-", "1,234"]]
    sides = re.findall(r'<th style="text-align:(\w+)">', shown)
    assert sides == ["left", "right", "right"]


def test_a_table_brings_no_colours_of_its_own() -> None:
    assert not re.search(r"color|background|#[0-9a-f]{3}", html_table("t", [{"a": "1"}], "note"))


@pytest.fixture
def written(tmp_path: Path) -> PlannedStudy:
    """A study of fourteen trials: the later the better; the last two were stopped, and failed."""
    found = PlannedStudy(small_plan(tmp_path, trials=20))
    done = [scored((0.5, 0.6, 0.7 + trial / 100), values={"lam": 0.1 + trial}) for trial in range(12)]
    found.write(*done, scored((0.5, 0.4), "stopped"), scored((0.5,), "failed", error="ValueError: no <b>"))
    return found


def test_a_study_shows_its_best_trials_first_beside_the_untrained_encoder(written: PlannedStudy) -> None:
    data = read_study(written.store, STUDY)
    shown = records(data)
    assert [row["trial"] for row in shown] == [str(11 - place) for place in range(MOST_ROWS)]
    assert shown[0]["val.accuracy"] == "0.81"
    assert shown[0]["untrained"] == "0.5"
    assert shown[0]["lam"] == "11.1"
    told = " ".join(said(data))
    assert "... and 2 more." in told
    assert "14 of 20 trials (12 completed, 1 stopped, 1 failed)" in told
    assert "Failed: ValueError: no <b> (1 of 14)." in told
    assert "--resume" in told
    assert (
        repr(data) == f"StudyData({STUDY}: interrupted; 14 of 20 trials (12 completed, 1 stopped, 1 failed))"
    )


def test_trials_are_shown_with_how_they_ended(written: PlannedStudy) -> None:
    trials = read_study(written.store, STUDY).trials
    shown = records(trials)
    assert len(shown) == MOST_ROWS
    assert said(trials) == ["14 trials", "... and 4 more."]
    failed = records(trials[-1])
    assert (failed[0]["status"], failed[0]["error"]) == ("failed", "ValueError: no <b>")


def test_best_configurations_are_rows_with_scores_and_values(written: PlannedStudy) -> None:
    best = best_trials(written.store, STUDY, 3)
    assert [row["trial"] for row in records(best)] == ["11", "10", "9"]
    assert records(best[0]) == records(best)[:1]
    assert "Trial 11 is the best: highest val.accuracy" in " ".join(said(best))
    assert said(SelectedTrials()) == ["No trial"]


def test_a_best_trial_that_learned_nothing_says_so(tmp_path: Path) -> None:
    found = PlannedStudy(small_plan(tmp_path, trials=1))
    found.write(scored((0.5, 0.4, 0.4)))
    told = "Training did not beat the untrained encoder in"
    assert f"{told} trial 0." in said(best_trials(found.store, STUDY)[0])
    assert f"{told} the best trial." in said(read_study(found.store, STUDY))


def test_a_sweep_shows_its_study_and_a_plan_what_it_searches(written: PlannedStudy) -> None:
    result = SweepResult(written.plan, {"completed": 12})
    assert records(result) == records(result.data())
    parameters = {row["parameter"]: row["values"] for row in records(written.plan)}
    assert "log" in parameters["lam"]
    assert "20 trials of at most 2 epochs" in " ".join(said(written.plan))


def test_a_sweep_whose_results_are_gone_is_shown_as_text(written: PlannedStudy, tmp_path: Path) -> None:
    (tmp_path / "studies" / f"{STUDY}.json").unlink()
    assert SweepResult(written.plan, {"completed": 12})._repr_html_() is None


def final_row(seed: int, accuracy: float) -> dict[str, Any]:
    scores = {"metric.test.accuracy": accuracy, "metric.test.untrained_accuracy": 0.5}
    return {"study": "one-final", "method": "infonce", "trial": 4, "seed": seed, **scores}


def test_final_runs_show_means_intervals_and_the_difference_from_untrained() -> None:
    runs = FinalRuns("one-final", [final_row(seed, 0.8 + seed / 100) for seed in range(3)], failed=1)
    trained, untrained = records(runs)
    assert trained["test accuracy"] == "0.810 ± 0.010"
    assert trained["95 % interval"] == "0.7852 to 0.8348"
    assert (untrained["encoder"], untrained["test accuracy"], untrained["n"]) == ("untrained", "0.5 ± 0", "3")
    difference = Tables(runs._repr_html_()).tables[1][-1]
    assert difference[:2] == ["untrained", "+0.310 ± 0.010"]
    assert "Failed, and not counted: 1 of the runs." in said(runs)
    assert [one.reference for one in runs.differences] == ["untrained"]


def test_final_runs_of_several_studies_are_compared_with_the_first() -> None:
    first = FinalRuns("one-final", [final_row(seed, 0.8 + seed / 100) for seed in range(3)], failed=1, held=3)
    other = [{**final_row(seed, 0.7), "study": "two-final"} for seed in range(3)]
    both = first.beside(FinalRuns("two-final", other, failed=2))
    assert (both.study, len(both.rows), both.failed, both.held) == ("one-final, two-final", 6, 3, 3)
    assert [row["encoder"] for row in records(both)] == [
        "infonce, trial 4 of one",
        "infonce, trial 4 of two",
        "untrained",
    ]
    assert [one.reference for one in both.differences] == ["infonce, trial 4 of two", "untrained"]


def test_no_final_run_and_a_single_one_are_shown_too() -> None:
    assert Tables(FinalRuns("one-final", [], failed=2)._repr_html_()).tables == []
    single = FinalRuns("one-final", [final_row(1, 0.9)], failed=0)
    assert records(single)[0]["95 % interval"] == "-"
    assert "seed by seed" not in " ".join(said(single))


def test_a_study_gives_its_final_runs(written: PlannedStudy) -> None:
    assert read_study(written.store, STUDY).final_runs is None
    record = make_final_record(f"{STUDY}-final", created=written.record.created)
    final = WrittenStudy(written.location, record)
    final.write(
        Run(trial=11, seed=7, phase="final", final={"test.accuracy": 0.9}), Run(seed=8, status="failed")
    )
    runs = read_study(written.store, STUDY).final_runs
    assert runs is not None
    assert ([row["seed"] for row in runs.rows], runs.failed, runs.held) == ([7], 1, 2)


def test_a_results_folder_lists_its_latest_studies(written: PlannedStudy) -> None:
    WrittenStudy(written.location, make_record("earlier"))
    names = [row["study"] for row in records(written.store)]
    assert names == [STUDY, "earlier"]
    assert records(written.store)[0]["trials"] == "14"
    assert records(written.store)[0]["endings"] == "12 completed, 1 stopped, 1 failed"


def test_an_evaluation_is_a_table_of_scores_beside_those_before_training() -> None:
    def measured(seed: int, trained: bool) -> Measurement:
        scores = {"accuracy": (0.5 if trained else 0.2) + seed / 10}
        return Measurement("e", seed, trained, "digits", "knn", None, None, scores, torch.eye(2).long())

    measurements = tuple(measured(seed, trained) for trained in (True, False) for seed in (1, 2, 3))
    found = Transfer((), ("grey images are repeated",), measurements, (), {"digits": ("0", "1")})
    (row,) = records(found)
    assert row["trained"] == "0.70 ± 0.10"
    assert row["untrained"] == "0.40 ± 0.10"
    assert row["n"] == "3 seeds"
    assert "grey images are repeated" in said(found)
    assert "accuracy 0.70 ± 0.10, untrained 0.40 ± 0.10" in repr(found)


def test_an_analysis_shows_what_can_be_said_and_its_effects() -> None:
    found = analyse_observations([study(40)])
    assert {row["parameter"] for row in records(found)} == {"kernel", "sigma2", "lr"}
    assert records(found)[2]["verdict"] == "matters"
    assert repr(found) == "Sensitivity(trials: one 40)"
    assert "too few to tell" in " ".join(said(analyse_observations([study(4)])))
